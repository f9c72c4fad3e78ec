//! Accepts or rejects a recipient by its status in the store, as `accept_mail` would now.
//! Acceptances are cached for a few seconds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_store::{RecipientMailbox, RecipientStatus};
use uuid::Uuid;

use crate::smtp::RecipientRejection;

/// An accepted recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acceptance {
    /// The tenant that would own the mail.
    pub(super) tenant: Option<Uuid>,
    /// What is left of the quota of its mailbox.
    pub(super) quota_left: QuotaLeft,
}

/// What is left of the quota of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaLeft {
    /// It has no mailbox: other bounds apply, which are checked when mail is stored.
    NoMailbox,
    /// The usage was not read, since no size was declared.
    Unknown,
    /// Bytes left; negative if the quota is exceeded already.
    Bytes(i64),
}

impl QuotaLeft {
    /// Whether a message of the declared size (0: none) fits; `None` if the usage must be read.
    pub(super) fn fits(self, size: u64) -> Option<bool> {
        match self {
            Self::NoMailbox => Some(true),
            _ if size == 0 => Some(true),
            Self::Unknown => None,
            Self::Bytes(left) => Some(i64::try_from(size).is_ok_and(|size| size <= left)),
        }
    }
}

/// Accepts or rejects a recipient.
pub(super) fn decide(
    address: &RecipientAddress,
    reserved: Reservation,
    status: RecipientStatus,
    size: u64,
) -> Result<Acceptance, RecipientRejection> {
    let RecipientStatus::Served { system, shared_inboxes, tenant, suspended, mailbox } = status else {
        return Err(RecipientRejection::NotServed);
    };
    if system && address.has_non_ascii_local_part() {
        return Err(RecipientRejection::NonAscii);
    }
    let quota_left = match mailbox {
        RecipientMailbox::Held => return Err(RecipientRejection::Unknown),
        RecipientMailbox::Present { quota_left, .. } => {
            quota_left.map_or(QuotaLeft::Unknown, QuotaLeft::Bytes)
        }
        RecipientMailbox::Absent if !system || reserved == Reservation::Platform => QuotaLeft::NoMailbox,
        RecipientMailbox::Absent if reserved == Reservation::None && shared_inboxes => QuotaLeft::NoMailbox,
        RecipientMailbox::Absent => return Err(RecipientRejection::Unknown),
    };
    if suspended {
        return Err(RecipientRejection::Suspended);
    }
    if quota_left.fits(size) == Some(false) {
        return Err(RecipientRejection::MailboxFull);
    }
    Ok(Acceptance { tenant, quota_left })
}

/// How long an entry is valid.
const TTL: Duration = Duration::from_secs(5);
/// Maximum entries of a generation.
const GENERATION_MAX: usize = 32_768;

/// Recipients that were accepted in the last seconds, by address. The cache is bounded by two generations: the older
/// one is dropped when the newer one is full or old.
#[derive(Debug, Default)]
pub(super) struct AcceptCache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<RecipientAddress, CachedAcceptance>,
    older: HashMap<RecipientAddress, CachedAcceptance>,
    /// When the newer generation was started.
    started: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct CachedAcceptance {
    acceptance: Acceptance,
    valid_until: Instant,
}

impl AcceptCache {
    /// The valid entry of an address, unless the declared size needs its quota to be read again.
    pub(super) fn get(&self, address: &RecipientAddress, size: u64) -> Option<Acceptance> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = *generations.newer.get(address).or_else(|| generations.older.get(address))?;
        drop(generations);
        let valid =
            entry.valid_until > Instant::now() && entry.acceptance.quota_left.fits(size) == Some(true);
        valid.then_some(entry.acceptance)
    }

    pub(super) fn insert(&self, address: RecipientAddress, acceptance: Acceptance) {
        let now = Instant::now();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let started = *generations.started.get_or_insert(now);
        if generations.newer.len() >= GENERATION_MAX || now - started > TTL {
            generations.older = std::mem::take(&mut generations.newer);
            generations.started = Some(now);
        }
        generations.newer.insert(address, CachedAcceptance { acceptance, valid_until: now + TTL });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: Uuid = Uuid::from_u128(1);
    const SYSTEM: RecipientStatus = RecipientStatus::Served {
        system: true,
        shared_inboxes: true,
        tenant: None,
        suspended: false,
        mailbox: RecipientMailbox::Absent,
    };

    fn with(change: impl FnOnce(&mut bool, &mut bool, &mut bool, &mut RecipientMailbox)) -> RecipientStatus {
        let mut status = SYSTEM;
        if let RecipientStatus::Served { system, shared_inboxes, suspended, mailbox, .. } = &mut status {
            change(system, shared_inboxes, suspended, mailbox);
        }
        status
    }

    fn of_tenant(mut status: RecipientStatus) -> RecipientStatus {
        if let RecipientStatus::Served { tenant, .. } = &mut status {
            *tenant = Some(TENANT);
        }
        status
    }

    #[test]
    fn decides_each_case() {
        use RecipientRejection::{MailboxFull, NonAscii, NotServed, Suspended, Unknown};
        let plain = RecipientAddress::parse("a@b.example").unwrap();
        let umlaut = RecipientAddress::parse("\u{fc}@b.example").unwrap();
        let free = Acceptance { tenant: None, quota_left: QuotaLeft::NoMailbox };
        let own = Acceptance { tenant: Some(TENANT), quota_left: QuotaLeft::NoMailbox };
        let mailbox = |quota_left| {
            with(|_, _, _, mailbox| *mailbox = RecipientMailbox::Present { id: Uuid::nil(), quota_left })
        };
        let held = with(|_, _, suspended, mailbox| (*suspended, *mailbox) = (true, RecipientMailbox::Held));
        let closed = with(|_, shared_inboxes, _, _| *shared_inboxes = false);
        let custom = with(|system, _, _, _| *system = false);
        let sink = with(|system, shared_inboxes, _, _| (*system, *shared_inboxes) = (false, false));
        let suspended = with(|system, _, suspended, _| (*system, *suspended) = (false, true));
        for (address, reserved, status, size, expected) in [
            (&plain, Reservation::None, RecipientStatus::NotServed, 0, Err(NotServed)),
            (&plain, Reservation::None, SYSTEM, 1, Ok(free)),
            (&plain, Reservation::Refused, SYSTEM, 0, Err(Unknown)),
            (&plain, Reservation::Platform, of_tenant(SYSTEM), 0, Ok(own)),
            (&plain, Reservation::Platform, of_tenant(closed), 0, Ok(own)),
            (&plain, Reservation::None, closed, 0, Err(Unknown)),
            (&plain, Reservation::None, held, 0, Err(Unknown)),
            (&umlaut, Reservation::None, SYSTEM, 0, Err(NonAscii)),
            (&umlaut, Reservation::None, of_tenant(custom), 0, Ok(own)),
            (&plain, Reservation::Refused, of_tenant(custom), 0, Ok(own)),
            (&plain, Reservation::None, suspended, 0, Err(Suspended)),
            (
                &plain,
                Reservation::None,
                mailbox(None),
                0,
                Ok(Acceptance { tenant: None, quota_left: QuotaLeft::Unknown }),
            ),
            (
                &plain,
                Reservation::None,
                of_tenant(mailbox(Some(5))),
                5,
                Ok(Acceptance { tenant: Some(TENANT), quota_left: QuotaLeft::Bytes(5) }),
            ),
            (&plain, Reservation::None, mailbox(Some(5)), 6, Err(MailboxFull)),
            (&plain, Reservation::None, mailbox(Some(-1)), 1, Err(MailboxFull)),
            (&umlaut, Reservation::Sink, of_tenant(sink), 9, Ok(own)),
            (&plain, Reservation::Sink, held, 0, Err(Unknown)),
            (&plain, Reservation::Sink, suspended, 0, Err(Suspended)),
            (&plain, Reservation::Sink, mailbox(Some(5)), 6, Err(MailboxFull)),
        ] {
            assert_eq!(
                decide(address, reserved, status, size),
                expected,
                "{address:?} {reserved:?} {status:?} {size}"
            );
        }
    }

    #[test]
    fn returns_entries_that_cover_the_size_and_is_bounded() {
        let cache = AcceptCache::default();
        let address = |name: usize| RecipientAddress::parse(&format!("a{name}@b.example")).unwrap();
        let acceptance = |quota_left| Acceptance { tenant: None, quota_left };
        cache.insert(address(1), acceptance(QuotaLeft::Bytes(10)));
        cache.insert(address(2), acceptance(QuotaLeft::Unknown));
        assert_eq!(cache.get(&address(1), 10), Some(acceptance(QuotaLeft::Bytes(10))));
        assert_eq!(cache.get(&address(1), 11), None);
        assert_eq!(cache.get(&address(2), 0), Some(acceptance(QuotaLeft::Unknown)));
        assert_eq!(cache.get(&address(2), 1), None);
        assert_eq!(cache.get(&address(3), 0), None);
        for name in 0..3 * GENERATION_MAX {
            cache.insert(address(name), acceptance(QuotaLeft::NoMailbox));
        }
        let generations = cache.0.lock().unwrap();
        assert!(generations.newer.len() + generations.older.len() <= 2 * GENERATION_MAX);
    }
}
