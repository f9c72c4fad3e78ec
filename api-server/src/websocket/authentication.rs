//! From the upgrade to `auth_ok`: whose socket it is.

use std::time::Duration;

use jiff::Timestamp;
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::SOCKETS_PER_MAILBOX;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::end::{End, Refusal};
use super::message;
use super::socket::{Event, Frame, Socket};
use crate::arrivals::{Topic, Waiter};
use crate::auth::MailboxClaim;
use crate::state::AppState;

/// How long a client may take to authenticate. Fixed by the interface.
const WINDOW: Duration = Duration::from_secs(10);

/// What a client that is authenticated has.
pub(super) struct Authenticated {
    /// The mailbox that it watches, and until when.
    pub(super) claim: MailboxClaim,
    /// Its place among the sockets of the mailbox.
    pub(super) slot: Permit,
    /// Where the stream stood: everything after it is pushed.
    pub(super) position: i64,
}

/// Waits for the message that authenticates, and judges it. From then on `waiter` listens for the
/// mailbox.
pub(super) async fn authenticate(
    state: &AppState,
    socket: &mut Socket,
    waiter: &mut Waiter,
) -> Result<Authenticated, End> {
    waiter.wake_at(Instant::now() + WINDOW);
    let text = first_message(socket, waiter).await?;
    let token = message::presented_token(&text).ok_or(Refusal::InvalidAuthMessage)?;
    let claim = state.mailbox_tokens.read(&token, state.clock.now()).ok_or(Refusal::InvalidToken)?;
    Ok(watch(state, waiter, claim).await?)
}

async fn first_message(socket: &mut Socket, waiter: &Waiter) -> Result<Utf8Bytes, End> {
    loop {
        match socket.next(waiter).await {
            Event::Told(woken) if woken.drain => return Err(End::Draining),
            Event::Told(woken) if woken.due => return Err(Refusal::InvalidAuthMessage.into()),
            Event::Frame(Frame::Text(text)) => return Ok(text),
            Event::Frame(Frame::Unreadable) => return Err(Refusal::InvalidAuthMessage.into()),
            Event::Frame(Frame::End(end)) => return Err(end),
            Event::Told(_) | Event::Frame(Frame::Ping | Frame::Pong) | Event::Flushed => {}
        }
    }
}

/// Lets a claim have its mailbox watched, if it still holds and there is a place.
async fn watch(state: &AppState, waiter: &mut Waiter, claim: MailboxClaim) -> Result<Authenticated, Refusal> {
    let now = state.clock.now();
    let mailbox = state.store.find_mailbox(claim.mailbox).await?.ok_or(Refusal::InvalidToken)?;
    check(&claim, mailbox.password_epoch, mailbox.suspended, now)?;
    let slot = state.bus.acquire(PermitKey::MailboxSockets(mailbox.id), SOCKETS_PER_MAILBOX).await;
    let slot = slot.ok_or(Refusal::TooManyConnections)?;
    let mut topics = vec![Topic::Inbox(mailbox.id), Topic::Rights(mailbox.id), Topic::Rights(mailbox.domain)];
    topics.extend(mailbox.tenant.map(Topic::Rights));
    waiter.listen(topics);
    waiter.expire_at(Some(claim.expires_at));
    // What ended before it listened shows here; what ends from now on is told.
    let scan = state.store.scan_mailbox(mailbox.id, i64::MAX, 1, now).await?.ok_or(Refusal::InvalidToken)?;
    check(&claim, scan.password_epoch, scan.suspended, now)?;
    state.touches.mailbox(&mailbox, now);
    Ok(Authenticated { claim, slot, position: scan.position })
}

/// Whether a claim still holds for its mailbox, as the store has it.
///
/// # Errors
/// What the client is to be told.
pub(super) fn check(
    claim: &MailboxClaim,
    epoch: i32,
    suspended: bool,
    now: Timestamp,
) -> Result<(), Refusal> {
    if epoch != claim.epoch || claim.expires_at <= now {
        Err(Refusal::InvalidToken)
    } else if suspended {
        Err(Refusal::AccountDisabled)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_claim_ends_with_its_time_its_epoch_and_the_tenants_suspension() {
        let expires_at: Timestamp = "2031-01-08T00:00:00Z".parse().unwrap();
        let before = expires_at - Duration::from_secs(1);
        let claim = MailboxClaim { mailbox: Uuid::nil(), epoch: 3, expires_at };
        assert_eq!(check(&claim, 3, false, before), Ok(()));
        assert_eq!(check(&claim, 3, true, before), Err(Refusal::AccountDisabled));
        assert_eq!(check(&claim, 3, false, expires_at), Err(Refusal::InvalidToken));
        assert_eq!(check(&claim, 4, true, before), Err(Refusal::InvalidToken), "it tells nothing more");
    }
}
