//! The 25 s hold of `/v1/inbox`: reads what there is, waits for more, reads again.
//!
//! The order is fixed, so that no mail is missed: the caller takes the slots, the wait is
//! registered, the store is read from the cursor, and only then it waits; a wake is a hint,
//! and the read after it decides. Who may read is decided anew in every read.

mod collected;
mod filter;
mod query;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use tempmail_model::address::RecipientAddress;
use tempmail_model::limits::LONG_POLL_SECONDS;
use tempmail_store::{MessageRow, OpenWait, WaitEnd};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

pub(crate) use query::LongPollQuery;

use crate::arrivals::Scope;
use crate::error::{V1Error, code};
use crate::openapi::Operation;
use crate::state::AppState;
use reader::{Progress, Reader};

/// A long-poll of one address.
pub(crate) struct InboxWait {
    /// The token that waits.
    pub(crate) token: Uuid,
    /// Its tenant.
    pub(crate) tenant: Uuid,
    /// The exact address.
    pub(crate) address: Arc<RecipientAddress>,
    /// What for, and for how many.
    pub(crate) query: LongPollQuery,
    /// The position of `since`.
    pub(crate) since: Option<i64>,
}

/// How a long-poll ends that does not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is mail.
    Mail {
        /// Newest first; at least one.
        messages: Vec<MessageRow>,
        /// Where to go on.
        position: i64,
    },
    /// Time is up, the server drains, or the scan reached its bound.
    Nothing {
        /// Where to go on.
        position: i64,
    },
}

/// Describes a long-poll: its parameters and its answers but the mail.
pub(crate) fn described(operation: Operation) -> Operation {
    query::described(operation)
        .empty(204, "Nothing within 25 s: ask again.")
        .header("X-Next-Since", "The position reached, to go on from.")
        .fails(&[code::TOKEN_BUSY])
}

/// Waits for mail as the interface says; at most 25 s.
///
/// # Errors
/// The address may not be read (any more), the token has ended, or Postgres is away.
pub(crate) async fn wait_on_inbox(state: &AppState, wait: InboxWait) -> Result<Outcome, V1Error> {
    let deadline = sleep_until(Instant::now() + Duration::from_secs(LONG_POLL_SECONDS));
    tokio::pin!(deadline);
    let mut waiter = state.arrivals.register(scopes(&wait.address));
    let InboxWait { token, tenant, address, query, since } = wait;
    let mut reader = Reader::new(tenant, Arc::clone(&address), query, since);
    let mut last = false;
    loop {
        // Boxed: while it waits, a long-poll does not keep the room that reading takes.
        let (progress, access) = Box::pin(reader.read(state)).await?;
        let registered = waiter.covers(Scope::Inbox(access.inbox));
        match progress {
            Progress::Enough | Progress::Spent => return Ok(reader.outcome()),
            Progress::Waiting if last => return Ok(reader.outcome()),
            Progress::Waiting if !registered => {
                waiter.cover(Scope::Inbox(access.inbox));
                continue;
            }
            Progress::Waiting => {}
        }
        waiter.watch(OpenWait { token, address: Arc::clone(&address), access });
        tokio::select! {
            () = waiter.woken() => {}
            () = &mut deadline => last = true,
            () = state.shutdown.drain.cancelled() => return Ok(reader.outcome()),
        }
        match waiter.ended() {
            Some(WaitEnd::TokenGone) => return Err(V1Error::InvalidToken),
            Some(WaitEnd::TokenExpired) => return Err(V1Error::SessionExpired),
            Some(WaitEnd::TenantSuspended) => return Err(V1Error::AccountDisabled),
            // The next read finds out who may read now.
            Some(WaitEnd::Moved) | None => {}
        }
    }
}

/// What is known to wake a wait on `address` before the store was asked: mail for the exact
/// address, and changes of the mailbox that a tag belongs to.
fn scopes(address: &RecipientAddress) -> impl Iterator<Item = Scope> {
    let base = format!("{}@{}", address.base_local_part(), address.domain());
    let base = RecipientAddress::parse(&base).ok().map(|base| Scope::Inbox(base.inbox_key()));
    std::iter::once(Scope::Inbox(address.inbox_key())).chain(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(&'static AppState, InboxWait) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_wait_is_small() {
        let size = size_of_future(wait_on_inbox);
        assert!(size <= 1024, "{size}");
    }

    #[test]
    fn a_tag_waits_for_its_mailbox_too() {
        let scopes = |text: &str| scopes(&RecipientAddress::parse(text).unwrap()).collect::<Vec<_>>();
        let base = scopes("name@b.example");
        assert_eq!(base[0], base[1]);
        assert_eq!(scopes("name+tag@b.example")[1], base[0]);
        assert_ne!(scopes("name+tag@b.example")[0], base[0]);
        assert_eq!(scopes("+tag@b.example").len(), 1);
    }
}
