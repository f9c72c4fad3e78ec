//! A socket from its upgrade to its close.

use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use tempmail_admission::{ClientNetwork, Share};
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::SOCKETS_PER_MAILBOX;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::close::{CloseReason, SocketRejection};
use super::mailbox::MailboxSource;
use super::socket::{ClientFrame, Socket, SocketEvent};
use super::{message, push};
use crate::arrivals::Subscriber;
use crate::auth::VerifiedMailboxToken;
use crate::http::connection::Connection;
use crate::realtime::follower::{Follower, Patience, Start};
use crate::state::AppState;

/// How long a client may take to authenticate. Fixed by the interface.
const TIMEOUT: Duration = Duration::from_secs(10);

/// That of a client among the sockets that are not authenticated.
pub(super) type SocketShare = Share<ClientNetwork>;

/// Serves the socket that a connection is upgraded to; `share` is held until the client is
/// authenticated. `shutdown` first drains the socket, and cuts it when it stops.
pub(super) async fn run(state: AppState, connection: Connection, share: SocketShare, upgrade: OnUpgrade) {
    // The upgrade fails where the client disconnected before the answer.
    let Ok(upgraded) = upgrade.await else { return };
    let stop = state.shutdown.stop.clone();
    let socket = Box::pin(Socket::new(upgraded, connection)).await;
    stop.run_until_cancelled(serve(state, socket, share)).await;
}

async fn serve(state: AppState, mut socket: Socket, share: SocketShare) {
    let _open = OpenSocketGauge::increment();
    // Boxed, as everything that an idle socket does not need.
    let authenticated = Box::pin(authenticate(&state, &mut socket)).await;
    drop(share);
    let reason = match authenticated {
        Ok((follower, permit)) => {
            let reason = push::run(&state, &mut socket, follower).await;
            // Released before the client is notified, so that it can reconnect at once, to any process.
            permit.release().await;
            reason
        }
        Err(reason) => reason,
    };
    metrics::counter!("tempmail_websockets_ended_total", "reason" => reason.label()).increment(1);
    Box::pin(socket.close(&reason)).await;
}

/// Waits for the message that authenticates, and verifies it. Returns the mail of the mailbox from now on, and the permit among
/// the sockets of the mailbox.
async fn authenticate(
    state: &AppState,
    socket: &mut Socket,
) -> Result<(Box<Follower<MailboxSource>>, Permit), CloseReason> {
    let mut subscriber = state.arrivals.register();
    subscriber.schedule(Instant::now() + TIMEOUT);
    let text = first_message(socket, &subscriber).await?;
    let jwt = message::presented_token(&text).ok_or(SocketRejection::InvalidAuthMessage)?;
    let token = state.auth.mailbox_tokens.verify(&jwt, state.clock.now());
    Ok(follow(state, subscriber, token.ok_or(SocketRejection::InvalidToken)?).await?)
}

async fn first_message(socket: &mut Socket, subscriber: &Subscriber) -> Result<Utf8Bytes, CloseReason> {
    loop {
        match socket.next(subscriber.notified()).await {
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

/// Acquires the permit, and follows the mailbox of a token that is still accepted.
async fn follow(
    state: &AppState,
    subscriber: Subscriber,
    token: VerifiedMailboxToken,
) -> Result<(Box<Follower<MailboxSource>>, Permit), SocketRejection> {
    let now = state.clock.now();
    let mailbox = state.store.find_mailbox(token.mailbox).await?.ok_or(SocketRejection::InvalidToken)?;
    let source = MailboxSource::new(token, &mailbox, now)?;
    let permit = state.bus.acquire(PermitKey::MailboxSockets(mailbox.id), SOCKETS_PER_MAILBOX).await;
    let permit = permit.ok_or(SocketRejection::TooManyConnections)?;
    // Boxed: a future that a value is moved through keeps space for it.
    let mut follower = Box::new(Follower::new(state, subscriber, source, Start::Now, Patience::Stream));
    // This read finds rights that ended before the subscription; later changes are notified.
    follower.first(state, 0).await?;
    state.auth.last_used.record_mailbox(&mailbox, now);
    Ok((follower, permit))
}

/// Counts a socket while it is open.
struct OpenSocketGauge;

impl OpenSocketGauge {
    fn increment() -> Self {
        metrics::gauge!("tempmail_websockets").increment(1);
        Self
    }
}

impl Drop for OpenSocketGauge {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_websockets").decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(AppState, Connection, SocketShare, OnUpgrade) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_socket() {
        let size = size_of_future(run);
        assert!(size <= 2048, "{size}");
    }
}
