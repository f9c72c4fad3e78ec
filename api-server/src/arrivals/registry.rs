//! Who waits for what. A waiter costs one small allocation and an entry a scope; it has no
//! timer and no channel of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempmail_model::message::Arrival;
use tempmail_store::{OpenWait, WaitEnd};
use tokio::sync::Notify;
use uuid::Uuid;

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Mail of one inbox: a mailbox, or the key of an exact address.
    Inbox(Uuid),
    /// Mail of one owner: a mailbox, a custom domain or a tenant.
    Owner(Uuid),
}

/// What the tasks of [`Arrivals`](super::Arrivals) tell one waiter.
#[derive(Debug, Default)]
struct Signal {
    /// Keeps one wake for a waiter that does not wait just then.
    woken: Notify,
    /// Why the wait must end; 0 while it need not.
    ended: AtomicU8,
}

/// All waiters of a process.
#[derive(Debug, Default)]
pub(super) struct Registry {
    scopes: Mutex<HashMap<Scope, Vec<Arc<Signal>>>>,
    rights: Mutex<HashMap<u64, (OpenWait, Arc<Signal>)>>,
    next: AtomicU64,
}

impl Registry {
    pub(super) fn register(registry: &Arc<Self>, scopes: impl IntoIterator<Item = Scope>) -> Waiter {
        let mut waiter = Waiter {
            number: registry.next.fetch_add(1, Ordering::Relaxed),
            signal: Arc::default(),
            scopes: Vec::new(),
            registry: Arc::clone(registry),
        };
        for scope in scopes {
            waiter.cover(scope);
        }
        waiter
    }

    /// Wakes those who wait for these arrivals.
    pub(super) fn wake<'a>(&self, arrivals: impl IntoIterator<Item = &'a Arrival>) {
        let scopes = lock(&self.scopes);
        if scopes.is_empty() {
            return;
        }
        for arrival in arrivals {
            // The nil owner is every shared inbox: nobody waits for all of them.
            for scope in [Scope::Inbox(arrival.inbox), Scope::Owner(arrival.owner)] {
                for signal in scopes.get(&scope).into_iter().flatten() {
                    signal.woken.notify_one();
                }
            }
        }
    }

    /// Wakes everybody: what arrived is not known.
    pub(super) fn wake_all(&self) {
        for signal in lock(&self.scopes).values().flatten() {
            signal.woken.notify_one();
        }
    }

    /// What every watched wait rests on, by the waiter's number.
    pub(super) fn rights(&self) -> Vec<(u64, OpenWait)> {
        lock(&self.rights).iter().map(|(number, (wait, _))| (*number, wait.clone())).collect()
    }

    /// Tells a waiter that what it rests on is gone.
    pub(super) fn end(&self, number: u64, end: WaitEnd) {
        if let Some((_, signal)) = lock(&self.rights).get(&number) {
            signal.ended.store(code(end), Ordering::Release);
            signal.woken.notify_one();
        }
    }
}

/// One who waits; unregistered when dropped.
#[derive(Debug)]
pub struct Waiter {
    number: u64,
    signal: Arc<Signal>,
    scopes: Vec<Scope>,
    registry: Arc<Registry>,
}

impl Waiter {
    /// Waits for the next wake; one that came since the last is kept.
    pub async fn woken(&self) {
        self.signal.woken.notified().await;
    }

    /// Whether it already waits for `scope`.
    pub fn covers(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Waits for `scope` too, from now on.
    pub fn cover(&mut self, scope: Scope) {
        if !self.covers(scope) {
            lock(&self.registry.scopes).entry(scope).or_default().push(Arc::clone(&self.signal));
            self.scopes.push(scope);
        }
    }

    /// Has what the wait rests on looked at every few seconds: when it is gone, the waiter is
    /// woken and [`ended`](Self::ended) tells why.
    pub fn watch(&self, wait: OpenWait) {
        lock(&self.registry.rights).insert(self.number, (wait, Arc::clone(&self.signal)));
    }

    /// Why the wait must end; told once.
    pub fn ended(&self) -> Option<WaitEnd> {
        end_of(self.signal.ended.swap(0, Ordering::Acquire))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut scopes = lock(&self.registry.scopes);
        for scope in &self.scopes {
            if let Entry::Occupied(mut entry) = scopes.entry(*scope) {
                let waiting = entry.get_mut();
                if let Some(place) = waiting.iter().position(|signal| Arc::ptr_eq(signal, &self.signal)) {
                    waiting.swap_remove(place);
                }
                if waiting.is_empty() {
                    entry.remove();
                }
            }
        }
        drop(scopes);
        lock(&self.registry.rights).remove(&self.number);
    }
}

fn code(end: WaitEnd) -> u8 {
    match end {
        WaitEnd::TokenGone => 1,
        WaitEnd::TokenExpired => 2,
        WaitEnd::TenantSuspended => 3,
        WaitEnd::Moved => 4,
    }
}

fn end_of(code: u8) -> Option<WaitEnd> {
    [WaitEnd::TokenGone, WaitEnd::TokenExpired, WaitEnd::TenantSuspended, WaitEnd::Moved]
        .into_iter()
        .find(|end| self::code(*end) == code)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is a single insert or remove: a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tempmail_model::address::RecipientAddress;
    use tempmail_model::message::OwnerKind;
    use tempmail_store::InboxAccess;

    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn arrival(owner: u128, inbox: u128) -> Arrival {
        Arrival { seq: 1, owner: id(owner), inbox: id(inbox) }
    }

    fn is_woken(waiter: &Waiter) -> bool {
        waiter.woken().now_or_never().is_some()
    }

    #[test]
    fn only_those_who_wait_for_it_are_woken() {
        let registry = Arc::new(Registry::default());
        let inbox = Registry::register(&registry, [Scope::Inbox(id(1))]);
        let same = Registry::register(&registry, [Scope::Inbox(id(1)), Scope::Inbox(id(9))]);
        let owner = Registry::register(&registry, [Scope::Owner(id(2))]);
        let other = Registry::register(&registry, [Scope::Inbox(id(2)), Scope::Owner(id(1))]);
        registry.wake(&[arrival(2, 1)]);
        assert!(is_woken(&inbox) && is_woken(&same) && is_woken(&owner));
        assert!(!is_woken(&other) && !is_woken(&inbox));
        registry.wake_all();
        assert!(is_woken(&other) && is_woken(&same));
    }

    #[test]
    fn a_wake_before_the_wait_is_kept() {
        let registry = Arc::new(Registry::default());
        let mut waiter = Registry::register(&registry, []);
        waiter.cover(Scope::Inbox(id(1)));
        registry.wake(&[arrival(0, 1), arrival(0, 1)]);
        assert!(is_woken(&waiter));
        assert!(!is_woken(&waiter));
    }

    #[test]
    fn a_waiter_that_is_gone_leaves_nothing() {
        let registry = Arc::new(Registry::default());
        let kept = Registry::register(&registry, [Scope::Inbox(id(1))]);
        let gone = Registry::register(&registry, [Scope::Inbox(id(1)), Scope::Inbox(id(2))]);
        gone.watch(open_wait());
        drop(gone);
        assert_eq!(lock(&registry.scopes).len(), 1);
        assert!(registry.rights().is_empty());
        registry.wake(&[arrival(0, 1)]);
        assert!(is_woken(&kept));
        drop(kept);
        assert!(lock(&registry.scopes).is_empty());
    }

    #[test]
    fn a_wait_that_ends_is_told_why_once() {
        let registry = Arc::new(Registry::default());
        let waiter = Registry::register(&registry, [Scope::Inbox(id(1))]);
        waiter.watch(open_wait());
        let [(number, _)] = registry.rights()[..] else { panic!("one wait is watched") };
        registry.end(number, WaitEnd::TenantSuspended);
        assert!(is_woken(&waiter));
        assert_eq!(waiter.ended(), Some(WaitEnd::TenantSuspended));
        assert_eq!(waiter.ended(), None);
        registry.end(number + 1, WaitEnd::Moved);
        assert_eq!(waiter.ended(), None);
    }

    fn open_wait() -> OpenWait {
        OpenWait {
            token: id(3),
            address: Arc::new(RecipientAddress::parse("a@b.example").unwrap()),
            access: InboxAccess {
                domain: id(4),
                mailbox: None,
                owner_kind: OwnerKind::Shared,
                owner: id(0),
                inbox: id(1),
            },
        }
    }
}
