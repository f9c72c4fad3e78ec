//! From what is known of a recipient to yes or no. Says what `accept_mail` would say now.

use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_store::{RecipientMailbox, RecipientStatus};

use crate::smtp::RecipientRefusal;

/// A recipient that mail is accepted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepting {
    /// A shared inbox.
    pub shared: bool,
    /// What its mailbox can take.
    pub room: Room,
}

/// Octets that a recipient can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It has no mailbox: other bounds hold, which are looked at when mail is stored.
    NoMailbox,
    /// Nobody declared a size yet.
    NotAsked,
    /// Left in its quota.
    Octets(i64),
}

impl Room {
    /// Whether a message of the declared size (0: none was) fits, as far as this tells.
    pub fn fits(self, size: u64) -> Option<bool> {
        match self {
            Self::NoMailbox => Some(true),
            _ if size == 0 => Some(true),
            Self::NotAsked => None,
            Self::Octets(room) => Some(i64::try_from(size).is_ok_and(|size| size <= room)),
        }
    }
}

/// Judges a recipient by what the store knows of it.
pub fn judge(
    address: &RecipientAddress,
    reserved: Reservation,
    facts: RecipientStatus,
    size: u64,
) -> Result<Accepting, RecipientRefusal> {
    let RecipientStatus::Served { system, shared_inboxes, suspended, mailbox } = facts else {
        return Err(RecipientRefusal::NotOurs);
    };
    if system && address.has_non_ascii_local_part() {
        return Err(RecipientRefusal::NonAscii);
    }
    let accepting = match mailbox {
        RecipientMailbox::Held => return Err(RecipientRefusal::Unknown),
        RecipientMailbox::Present { quota_left } => {
            Accepting { shared: false, room: quota_left.map_or(Room::NotAsked, Room::Octets) }
        }
        RecipientMailbox::Absent if !system => Accepting { shared: false, room: Room::NoMailbox },
        RecipientMailbox::Absent => match reserved {
            Reservation::Platform => Accepting { shared: false, room: Room::NoMailbox },
            Reservation::None if shared_inboxes => Accepting { shared: true, room: Room::NoMailbox },
            Reservation::None | Reservation::Refused => return Err(RecipientRefusal::Unknown),
        },
    };
    if suspended {
        return Err(RecipientRefusal::Suspended);
    }
    if accepting.room.fits(size) == Some(false) {
        return Err(RecipientRefusal::MailboxFull);
    }
    Ok(accepting)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: RecipientStatus = RecipientStatus::Served {
        system: true,
        shared_inboxes: true,
        suspended: false,
        mailbox: RecipientMailbox::Absent,
    };

    fn with(change: impl FnOnce(&mut bool, &mut bool, &mut bool, &mut RecipientMailbox)) -> RecipientStatus {
        let mut facts = SYSTEM;
        if let RecipientStatus::Served { system, shared_inboxes, suspended, mailbox } = &mut facts {
            change(system, shared_inboxes, suspended, mailbox);
        }
        facts
    }

    #[test]
    fn each_case_has_its_answer() {
        use RecipientRefusal::{MailboxFull, NonAscii, NotOurs, Suspended, Unknown};
        let plain = RecipientAddress::parse("a@b.example").unwrap();
        let umlaut = RecipientAddress::parse("\u{fc}@b.example").unwrap();
        let shared = Accepting { shared: true, room: Room::NoMailbox };
        let own = Accepting { shared: false, room: Room::NoMailbox };
        let mailbox =
            |room| with(|_, _, _, mailbox| *mailbox = RecipientMailbox::Present { quota_left: room });
        let held = with(|_, _, suspended, mailbox| (*suspended, *mailbox) = (true, RecipientMailbox::Held));
        let closed = with(|_, shared_inboxes, _, _| *shared_inboxes = false);
        let custom = with(|system, _, _, _| *system = false);
        let suspended = with(|system, _, suspended, _| (*system, *suspended) = (false, true));
        for (address, reserved, facts, size, expected) in [
            (&plain, Reservation::None, RecipientStatus::NotServed, 0, Err(NotOurs)),
            (&plain, Reservation::None, SYSTEM, 1, Ok(shared)),
            (&plain, Reservation::Refused, SYSTEM, 0, Err(Unknown)),
            (&plain, Reservation::Platform, SYSTEM, 0, Ok(own)),
            (&plain, Reservation::Platform, closed, 0, Ok(own)),
            (&plain, Reservation::None, closed, 0, Err(Unknown)),
            (&plain, Reservation::None, held, 0, Err(Unknown)),
            (&umlaut, Reservation::None, SYSTEM, 0, Err(NonAscii)),
            (&umlaut, Reservation::None, custom, 0, Ok(own)),
            (&plain, Reservation::Refused, custom, 0, Ok(own)),
            (&plain, Reservation::None, suspended, 0, Err(Suspended)),
            (
                &plain,
                Reservation::None,
                mailbox(None),
                0,
                Ok(Accepting { shared: false, room: Room::NotAsked }),
            ),
            (
                &plain,
                Reservation::None,
                mailbox(None),
                0,
                Ok(Accepting { shared: false, room: Room::NotAsked }),
            ),
            (
                &plain,
                Reservation::None,
                mailbox(Some(5)),
                5,
                Ok(Accepting { shared: false, room: Room::Octets(5) }),
            ),
            (&plain, Reservation::None, mailbox(Some(5)), 6, Err(MailboxFull)),
            (&plain, Reservation::None, mailbox(Some(-1)), 1, Err(MailboxFull)),
        ] {
            assert_eq!(
                judge(address, reserved, facts, size),
                expected,
                "{address:?} {reserved:?} {facts:?} {size}"
            );
        }
    }
}
