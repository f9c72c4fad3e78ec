//! Turns at what a process does a few of at once. Those who wait are served in turns by party, and within a party by
//! member: one that asks for much delays itself.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The turns at one thing. Clones share them.
pub struct Turns<K: Copy + Eq + Hash>(Arc<State<K>>);

struct State<K: Copy + Eq + Hash> {
    bounds: TurnBounds,
    queue: Mutex<Queue<K>>,
}

/// How many turns there are, and how many may wait for one.
#[derive(Debug, Clone, Copy)]
pub struct TurnBounds {
    /// Turns at once.
    pub at_once: usize,
    /// Turns of a party at once.
    pub at_once_of_party: usize,
    /// Who may wait, in all. A party has at most as many as it leaves to others.
    pub waiting: usize,
    /// Who may wait of a member.
    pub waiting_of_member: usize,
}

/// Whose turn it is: a member of a party, such as a client of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnKey<K> {
    /// Parties take turns with each other.
    pub party: K,
    /// The members of a party take turns when it is the party's turn.
    pub member: K,
}

/// Why there was no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTurn {
    /// Too many wait.
    QueueFull,
    /// None came within the time.
    Timeout,
}

/// A turn; over when dropped.
pub struct Turn<K: Copy + Eq + Hash> {
    turns: Turns<K>,
    party: K,
}

struct Queue<K: Copy + Eq + Hash> {
    free: usize,
    /// Turns by party.
    held: HashMap<K, usize>,
    /// Who waits, in all.
    waiting: usize,
    last_number: u64,
    /// Those with members that wait, in turns.
    parties: VecDeque<Party<K>>,
}

struct Party<K: Copy + Eq + Hash> {
    key: K,
    waiting: usize,
    /// Those that wait, in turns.
    members: VecDeque<(K, VecDeque<Waiter<K>>)>,
}

struct Waiter<K: Copy + Eq + Hash> {
    number: u64,
    granted: oneshot::Sender<Turn<K>>,
}

/// An entry in the queue; left when dropped.
struct QueueEntry<'t, K: Copy + Eq + Hash> {
    turns: &'t Turns<K>,
    key: TurnKey<K>,
    number: u64,
    granted: oneshot::Receiver<Turn<K>>,
}

impl<K> From<K> for TurnKey<K>
where
    K: Copy,
{
    /// A party of one member.
    fn from(key: K) -> Self {
        Self { party: key, member: key }
    }
}

impl<K: Copy + Eq + Hash> Turns<K> {
    /// Turns within these bounds.
    pub fn new(bounds: TurnBounds) -> Self {
        let queue = Queue {
            free: bounds.at_once,
            held: HashMap::new(),
            waiting: 0,
            last_number: 0,
            parties: VecDeque::new(),
        };
        Self(Arc::new(State { bounds, queue: Mutex::new(queue) }))
    }

    /// Waits for a turn, at most for `within`.
    ///
    /// # Errors
    /// Too many wait, or none came.
    pub async fn acquire(&self, key: impl Into<TurnKey<K>>, within: Duration) -> Result<Turn<K>, NoTurn> {
        self.acquire_until(key, Instant::now() + within).await
    }

    /// Waits for a turn until `deadline`. A turn that is free is taken at any time.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_until(
        &self,
        key: impl Into<TurnKey<K>>,
        deadline: Instant,
    ) -> Result<Turn<K>, NoTurn> {
        let key = key.into();
        let mut entry = {
            let mut queue = self.lock();
            if queue.may_begin(key.party, &self.0.bounds) {
                return Ok(self.begin(&mut queue, key.party));
            }
            let (number, granted) = queue.push(key, &self.0.bounds)?;
            QueueEntry { turns: self, key, number, granted }
        };
        match timeout_at(deadline, &mut entry.granted).await {
            Ok(Ok(turn)) => Ok(turn),
            // The sender is in the queue until it sends.
            Ok(Err(_)) | Err(_) => Err(NoTurn::Timeout),
        }
    }

    fn begin(&self, queue: &mut Queue<K>, party: K) -> Turn<K> {
        queue.free -= 1;
        *queue.held.entry(party).or_insert(0) += 1;
        Turn { turns: self.clone(), party }
    }

    fn end(&self, party: K) {
        let mut queue = self.lock();
        queue.free += 1;
        if let Entry::Occupied(mut held) = queue.held.entry(party) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
        let mut begun = Vec::new();
        while let Some((party, waiter)) = queue.next(&self.0.bounds) {
            begun.push((waiter, self.begin(&mut queue, party)));
        }
        // A turn that nobody waits for any more ends when it is dropped, which locks the queue.
        drop(queue);
        for (waiter, turn) in begun {
            drop(waiter.granted.send(turn));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Queue<K> {
    fn may_begin(&self, party: K, bounds: &TurnBounds) -> bool {
        self.free > 0 && self.held.get(&party).is_none_or(|held| *held < bounds.at_once_of_party)
    }

    fn push(
        &mut self,
        key: TurnKey<K>,
        bounds: &TurnBounds,
    ) -> Result<(u64, oneshot::Receiver<Turn<K>>), NoTurn> {
        let left = bounds.waiting.checked_sub(self.waiting + 1).ok_or(NoTurn::QueueFull)?;
        let at = self.parties.iter().position(|party| party.key == key.party);
        let party = match at {
            Some(at) => &mut self.parties[at],
            None => {
                self.parties.push_back_mut(Party { key: key.party, waiting: 0, members: VecDeque::new() })
            }
        };
        let at = party.members.iter().position(|(member, _)| *member == key.member);
        let of_member = at.map_or(0, |at| party.members[at].1.len());
        let is_within = (party.waiting == 0 || party.waiting < left) && of_member < bounds.waiting_of_member;
        if !is_within {
            return Err(NoTurn::QueueFull);
        }
        let (granted, receiver) = oneshot::channel();
        self.last_number += 1;
        let waiter = Waiter { number: self.last_number, granted };
        match at {
            Some(at) => party.members[at].1.push_back(waiter),
            None => party.members.push_back((key.member, VecDeque::from([waiter]))),
        }
        party.waiting += 1;
        self.waiting += 1;
        Ok((self.last_number, receiver))
    }

    /// Removes the next waiter whose turn may begin; its party and its member go to the end.
    fn next(&mut self, bounds: &TurnBounds) -> Option<(K, Waiter<K>)> {
        let at = self.parties.iter().position(|party| self.may_begin(party.key, bounds))?;
        let mut party = self.parties.remove(at)?;
        let (member, mut waiters) = party.members.pop_front()?;
        let waiter = waiters.pop_front()?;
        if !waiters.is_empty() {
            party.members.push_back((member, waiters));
        }
        self.waiting -= 1;
        party.waiting -= 1;
        let key = party.key;
        if party.waiting > 0 {
            self.parties.push_back(party);
        }
        Some((key, waiter))
    }

    /// Removes a waiter that has left.
    fn remove(&mut self, key: TurnKey<K>, number: u64) {
        let Some(at) = self.parties.iter().position(|party| party.key == key.party) else { return };
        let party = &mut self.parties[at];
        let Some(of) = party.members.iter().position(|(member, _)| *member == key.member) else { return };
        let waiters = &mut party.members[of].1;
        let Some(at) = waiters.iter().position(|waiter| waiter.number == number) else { return };
        waiters.remove(at);
        if waiters.is_empty() {
            party.members.remove(of);
        }
        party.waiting -= 1;
        self.waiting -= 1;
        if party.waiting == 0 {
            self.parties.remove(at);
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for QueueEntry<'_, K> {
    fn drop(&mut self) {
        self.turns.lock().remove(self.key, self.number);
    }
}

impl<K: Copy + Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        self.turns.end(self.party);
    }
}

impl<K: Copy + Eq + Hash> Clone for Turns<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Copy + Eq + Hash> fmt::Debug for Turns<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").field("bounds", &self.0.bounds).finish_non_exhaustive()
    }
}

impl<K: Copy + Eq + Hash> fmt::Debug for Turn<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::poll;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);

    type Acquiring<'t> = Pin<Box<dyn Future<Output = Result<Turn<char>, NoTurn>> + 't>>;

    fn turns(at_once: usize, at_once_of_party: usize) -> Turns<char> {
        Turns::new(TurnBounds { at_once, at_once_of_party, waiting: 100, waiting_of_member: 10 })
    }

    /// The order in which waiters with these names get the one turn that `held` is; party and member of each.
    async fn order(turns: &Turns<char>, held: Turn<char>, waiters: &[(char, char)]) -> String {
        let mut waiting: Vec<(char, Acquiring<'_>)> = Vec::new();
        for (party, member) in waiters {
            let key = TurnKey { party: *party, member: *member };
            let mut waiter: Acquiring<'_> = Box::pin(turns.acquire(key, WITHIN));
            assert!(poll!(waiter.as_mut()).is_pending());
            waiting.push((*member, waiter));
        }
        let (mut held, mut order) = (Some(held), String::new());
        while !waiting.is_empty() {
            drop(held.take());
            for at in 0..waiting.len() {
                if let std::task::Poll::Ready(turn) = poll!(waiting[at].1.as_mut()) {
                    held = Some(turn.unwrap());
                    order.push(waiting.remove(at).0);
                    break;
                }
            }
            assert!(held.is_some(), "the turn was not granted after {order}");
        }
        order
    }

    #[tokio::test]
    async fn parties_take_turns_and_within_them_members() {
        let turns = turns(1, 1);
        let held = turns.acquire('a', WITHIN).await.unwrap();
        let parties = ['a', 'a', 'a', 'b', 'c', 'b'].map(|party| (party, party));
        assert_eq!(order(&turns, held, &parties).await, "abcaba");
        let held = turns.acquire('a', WITHIN).await.unwrap();
        let members = [('a', '1'), ('a', '1'), ('a', '2'), ('b', '3'), ('b', '3')];
        assert_eq!(order(&turns, held, &members).await, "13231");
        let queue = turns.lock();
        assert!(queue.free == 1 && queue.held.is_empty() && queue.parties.is_empty() && queue.waiting == 0);
    }

    #[tokio::test]
    async fn a_party_has_so_many_at_once_and_holds_up_no_other() {
        let turns = turns(3, 2);
        let first = turns.acquire('a', WITHIN).await.unwrap();
        let _second = turns.acquire('a', WITHIN).await.unwrap();
        let mut third = Box::pin(turns.acquire('a', WITHIN));
        assert!(poll!(third.as_mut()).is_pending());
        assert!(turns.acquire('b', WITHIN).await.is_ok());
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn a_turn_of_one_that_waits_no_longer_goes_to_the_next() {
        let turns = turns(1, 1);
        let held = turns.acquire('a', WITHIN).await.unwrap();
        let mut gone: Acquiring<'_> = Box::pin(turns.acquire('b', WITHIN));
        let mut late: Acquiring<'_> = Box::pin(turns.acquire('c', WITHIN));
        let mut next: Acquiring<'_> = Box::pin(turns.acquire('d', WITHIN));
        for waiter in [&mut gone, &mut late, &mut next] {
            assert!(poll!(waiter.as_mut()).is_pending());
        }
        drop(gone);
        assert_eq!(turns.lock().waiting, 2);
        drop(held);
        drop(late);
        drop(next.await.unwrap());
        assert!(turns.acquire('e', WITHIN).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_after_the_time_and_leaves_the_queue() {
        let turns = turns(1, 1);
        let held = turns.acquire('a', WITHIN).await.unwrap();
        let began = Instant::now();
        assert_eq!(turns.acquire('b', WITHIN).await.unwrap_err(), NoTurn::Timeout);
        assert_eq!((began.elapsed(), turns.lock().waiting), (WITHIN, 0));
        drop(held);
        assert!(turns.acquire_until('b', began).await.is_ok(), "a turn that is free is taken at any time");
    }

    #[tokio::test]
    async fn bounds_those_who_wait_and_leaves_places_to_other_parties() {
        let bounds = TurnBounds { at_once: 1, at_once_of_party: 1, waiting: 8, waiting_of_member: 3 };
        let turns = Turns::new(bounds);
        let _held = turns.acquire('a', WITHIN).await.unwrap();
        let mut waiting: Vec<Acquiring<'_>> = Vec::new();
        let mut admitted = async |party, member| {
            let mut waiter: Acquiring<'_> = Box::pin(turns.acquire(TurnKey { party, member }, WITHIN));
            let is_admitted = poll!(waiter.as_mut()).is_pending();
            waiting.push(waiter);
            is_admitted
        };
        for _ in 0..3 {
            assert!(admitted('a', '1').await);
        }
        assert!(!admitted('a', '1').await, "more than a member may have");
        assert!(admitted('a', '2').await);
        assert!(!admitted('a', '2').await, "more than it leaves to other parties");
        for party in ['b', 'c', 'd', 'e'] {
            assert!(admitted(party, party).await);
        }
        assert!(!admitted('f', 'f').await);
    }
}
