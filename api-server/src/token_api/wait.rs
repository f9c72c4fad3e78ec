//! A long-poll from its permits to its answer.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::{LONG_POLLS_PER_ADDRESS, LONG_POLLS_PER_TOKEN};
use utoipa::ToSchema;

use crate::auth::{LiveCaller, MailCaller};
use crate::http::error::ApiError;
use crate::message::EmailSummary;
use crate::realtime::cursor::open_cursor;
use crate::realtime::long_poll::{self, LongPollQuery, WaitOutcome};
use crate::realtime::subscription::{Scope, Subscription};
use crate::state::AppState;

/// The cursor that a wait without mail has reached.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");

/// New mail, and the cursor to continue from.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewEmails {
    emails: Vec<EmailSummary>,
    next_since: String,
}

/// Waits up to 25 s for mail of `scope`, with the query of `uri`.
///
/// # Errors
/// [`ApiError::NotFound`] where the token is not for the scope; the query is invalid; [`ApiError::TokenBusy`], [`ApiError::AddrBusy`]; as [`long_poll::wait`].
pub(super) async fn wait(
    state: &AppState,
    caller: MailCaller,
    scope: Scope,
    uri: Uri,
) -> Result<Response, ApiError> {
    let caller = scope.admit(caller)?;
    let query = LongPollQuery::parse(&uri)?;
    // The URI keeps the buffer that the request was read into: it is released before the wait.
    drop(uri);
    let since = query.since.as_deref().map(|cursor| open_cursor(state, caller.tenant, cursor)).transpose()?;
    let permits = WaitPermits::acquire(state, caller, &scope).await?;
    let outcome = long_poll::wait(state, Subscription::new(state, caller.into(), scope), query, since).await;
    // Released before the answer is written, so that the client's next request, to whichever process,
    // finds them free.
    permits.release().await;
    let (outcome, generation) = outcome?;
    let generation = state.arrivals.generations().id(generation);
    Ok(match outcome {
        WaitOutcome::Mail { messages, position } => Json(NewEmails {
            emails: messages.iter().map(EmailSummary::from).collect(),
            next_since: state.cursors.seal(caller.tenant, generation, position),
        })
        .into_response(),
        WaitOutcome::Empty { position } => {
            let cursor = HeaderValue::try_from(state.cursors.seal(caller.tenant, generation, position))
                .map_err(|_not_ascii| ApiError::Internal)?;
            (StatusCode::NO_CONTENT, [(NEXT_SINCE, cursor)]).into_response()
        }
    })
}

/// The permits of a wait.
struct WaitPermits {
    token: Permit,
    address: Option<Permit>,
}

impl WaitPermits {
    async fn acquire(state: &AppState, caller: LiveCaller, scope: &Scope) -> Result<Self, ApiError> {
        let key = PermitKey::TokenWaits(caller.token);
        let token = state.bus.acquire(key, LONG_POLLS_PER_TOKEN).await.ok_or(ApiError::TokenBusy)?;
        let mut address = None;
        if let Scope::Address(of) = scope {
            let key = PermitKey::AddressWaits { tenant: caller.tenant, address: of.inbox_key() };
            address = state.bus.acquire(key, LONG_POLLS_PER_ADDRESS).await;
            if address.is_none() {
                token.release().await;
                return Err(ApiError::AddrBusy);
            }
        }
        Ok(Self { token, address })
    }

    async fn release(self) {
        if let Some(address) = self.address {
            address.release().await;
        }
        self.token.release().await;
    }
}
