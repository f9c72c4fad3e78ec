//! Authenticates a socket: from the upgrade to `auth_ok`.

use std::time::Duration;

use jiff::Timestamp;
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::SOCKETS_PER_MAILBOX;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::close::CloseReason;
use super::message;
use super::rejection::SocketRejection;
use super::socket::{ClientFrame, Socket, SocketEvent};
use crate::arrivals::{Position, Subscriber, Topic};
use crate::auth::VerifiedMailboxToken;
use crate::state::AppState;

/// How long a client may take to authenticate. Fixed by the interface.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The state of a client that is authenticated.
pub(super) struct Authenticated {
    /// The mailbox, and until when it may be read.
    pub(super) token: VerifiedMailboxToken,
    /// Among the sockets of the mailbox.
    pub(super) permit: Permit,
    /// The end of the stream: everything after it is pushed.
    pub(super) position: Position,
}

/// Waits for the message that authenticates, and verifies it. From then on `subscriber` is subscribed to
/// the mailbox.
pub(super) async fn authenticate(
    state: &AppState,
    socket: &mut Socket,
    subscriber: &mut Subscriber,
) -> Result<Authenticated, CloseReason> {
    subscriber.schedule(Instant::now() + TIMEOUT);
    let text = first_message(socket, subscriber).await?;
    let jwt = message::presented_token(&text).ok_or(SocketRejection::InvalidAuthMessage)?;
    let token = state.auth.mailbox_tokens.verify(&jwt, state.clock.now());
    Ok(subscribe(state, subscriber, token.ok_or(SocketRejection::InvalidToken)?).await?)
}

async fn first_message(socket: &mut Socket, subscriber: &Subscriber) -> Result<Utf8Bytes, CloseReason> {
    loop {
        match socket.next(subscriber).await {
            SocketEvent::Notified(notified) if notified.drain => return Err(CloseReason::Draining),
            SocketEvent::Notified(notified) if notified.due => {
                return Err(SocketRejection::InvalidAuthMessage.into());
            }
            SocketEvent::Frame(ClientFrame::Text(text)) => return Ok(text),
            SocketEvent::Frame(ClientFrame::Unsupported) => {
                return Err(SocketRejection::InvalidAuthMessage.into());
            }
            SocketEvent::Frame(ClientFrame::Closed(reason)) => return Err(reason),
            SocketEvent::Notified(_)
            | SocketEvent::Frame(ClientFrame::Ping | ClientFrame::Pong)
            | SocketEvent::Flushed => {}
        }
    }
}

/// Acquires the permit and subscribes to the mailbox of a token that is still accepted.
async fn subscribe(
    state: &AppState,
    subscriber: &mut Subscriber,
    token: VerifiedMailboxToken,
) -> Result<Authenticated, SocketRejection> {
    let now = state.clock.now();
    let mailbox = state.store.find_mailbox(token.mailbox).await?.ok_or(SocketRejection::InvalidToken)?;
    check_token(&token, mailbox.password_epoch, mailbox.suspended, now)?;
    let permit = state.bus.acquire(PermitKey::MailboxSockets(mailbox.id), SOCKETS_PER_MAILBOX).await;
    let permit = permit.ok_or(SocketRejection::TooManyConnections)?;
    let mut topics = vec![Topic::Inbox(mailbox.id), Topic::Rights(mailbox.id), Topic::Rights(mailbox.domain)];
    topics.extend(mailbox.tenant.map(Topic::Rights));
    subscriber.subscribe(topics);
    subscriber.schedule_expiry(Some(token.expires_at));
    // This read finds rights that ended before the subscription; later changes are notified.
    let generation = state.arrivals.generations().current();
    let scan = state.store.scan_mailbox(mailbox.id, i64::MAX, 1, now).await?;
    let scan = scan.ok_or(SocketRejection::InvalidToken)?;
    if !state.arrivals.generations().is(generation, scan.generation) {
        return Err(SocketRejection::Unavailable);
    }
    check_token(&token, scan.password_epoch, scan.suspended, now)?;
    state.auth.last_used.record_mailbox(&mailbox, now);
    Ok(Authenticated { token, permit, position: Position { generation, seq: scan.position } })
}

/// Whether a token is still accepted for its mailbox, as the store has it.
///
/// # Errors
/// What the client is sent.
pub(super) fn check_token(
    token: &VerifiedMailboxToken,
    epoch: i64,
    suspended: bool,
    now: Timestamp,
) -> Result<(), SocketRejection> {
    if epoch != token.epoch || token.expires_at <= now {
        Err(SocketRejection::InvalidToken)
    } else if suspended {
        Err(SocketRejection::AccountDisabled)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn rejects_a_token_of_another_epoch_an_expired_one_and_a_suspended_tenant() {
        let expires_at: Timestamp = "2031-01-08T00:00:00Z".parse().unwrap();
        let before = expires_at - Duration::from_secs(1);
        let token = VerifiedMailboxToken { mailbox: Uuid::nil(), epoch: 3, expires_at };
        let rejected = |epoch, suspended, now| check_token(&token, epoch, suspended, now).unwrap_err();
        assert_eq!(check_token(&token, 3, false, before), Ok(()));
        assert_eq!(rejected(3, true, before), SocketRejection::AccountDisabled);
        assert_eq!(rejected(3, false, expires_at), SocketRejection::InvalidToken);
        assert_eq!(rejected(4, true, before), SocketRejection::InvalidToken, "reveals no suspension");
    }
}
