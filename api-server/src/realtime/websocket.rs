//! `GET /api/ws`: new mail of one mailbox, pushed over a WebSocket (RFC 6455).
//!
//! To miss no mail, the order is fixed: the client authenticates, the socket acquires its permit and
//! subscribes, the position of the stream is read from the store, `auth_ok` is sent, and only then the
//! socket waits. An idle socket costs a task with small buffers and a subscriber; it has no timer of its
//! own.

mod close;
mod handshake;
mod mailbox;
mod message;
mod push;
mod session;
mod socket;

use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;

use crate::http::client::PublicCaller;
use crate::http::connection::Connection;
use crate::http::error::{ApiError, code};
use crate::http::own_origin;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// `Retry-After` for a client that has too many unauthenticated sockets.
const RETRY_AFTER: Duration = Duration::from_secs(1);

const ABOUT: &str = "\
A WebSocket (RFC 6455, version 13) for one mailbox; all messages are JSON texts.

- Within 10 s the client sends `{\"type\": \"auth\", \"token\": \"<mailbox JWT>\"}`, and nothing after that. \
The server answers `{\"type\": \"auth_ok\"}`; every mail that is stored from then on is pushed, once and in order.
- A mail is pushed as `PushedEmail`. Mail from before `auth_ok` is in `GET /api/messages`.
- `{\"error\": code}` is followed by a close with 1008: `invalid_auth_message` (none within 10 s, another message, a \
binary one, or one over 4096 bytes), `invalid_token`, `account_disabled`, `too_many_connections` (3 are \
open for the mailbox); or with 1013: `unavailable`. `invalid_token` and `account_disabled` are also sent when \
the right to read ends later.
- The server pings every 30 s, and closes when two pings have no pong. It closes with 1001 when it shuts down: \
connect again.
- Browsers may connect from the site's own origin only.";

/// The route of `/api/ws`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new().get(
        "/api/ws",
        Operation::new("openWebSocket", Credential::None, "Push new mail of a mailbox")
            .description(ABOUT)
            .constant()
            .about::<message::PushedEmail<'_>>()
            .empty(101, "The connection is a WebSocket.")
            .fails(&[code::UPGRADE_REQUIRED, code::ORIGIN_NOT_ALLOWED]),
        open,
    )
}

/// Upgrades the connection.
async fn open(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    Extension(connection): Extension<Connection>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let accepted = handshake::accept(&request)?;
    if !own_origin::is_own(&state.config.http, request.headers()) {
        return Err(ApiError::OriginNotAllowed);
    }
    let too_many = ApiError::RateLimitExceeded {
        retry_after: RETRY_AFTER,
        limit: "unauthenticated_sockets",
        decision: None,
    };
    let holders = client.holders(state.config.http.unauthenticated_sockets_per_client);
    let share = state.unauthenticated_sockets.try_acquire(holders, 1).map_err(|_exceeded| too_many)?;
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(session::run(state, connection, share, upgrade));
    Ok(accepted)
}
