//! The decision at RCPT. Addresses that certainly are shared inboxes are found in memory. For all
//! others one task queries Postgres for the waiting recipients of all sessions together, so that
//! they cost one round trip. An accepted recipient is cached for five seconds, a rejected one is
//! not. The owner of the mail is decided later, by the statement that stores it.

mod accept_cache;
mod acceptance;
mod checker;
mod lookup;
mod rejection_delay;
mod shared_inbox_index;

pub(crate) use checker::RecipientChecker;
pub(crate) use rejection_delay::RejectionDelay;
pub(crate) use shared_inbox_index::SharedInboxIndex;
