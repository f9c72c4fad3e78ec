//! A long-poll from its permits to its answer, and what any wait of a token needs of both.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::{LONG_POLLS_PER_ADDRESS, LONG_POLLS_PER_TOKEN};
use utoipa::ToSchema;

use crate::auth::{LiveCaller, MailCaller};
use crate::http::error::ApiError;
use crate::http::prefer::PreferredWait;
use crate::message::EmailSummary;
use crate::realtime::cursor::open_since;
use crate::realtime::follower::{Patience, Start};
use crate::realtime::long_poll::{self, LongPollQuery, WaitOutcome};
use crate::realtime::scope::{self, Scope};
use crate::state::AppState;

/// The cursor that a wait without mail has reached.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");

/// New mail, and the cursor to continue from.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewEmails {
    emails: Vec<EmailSummary>,
    next_since: String,
}

/// Waits up to 25 s, or as long as the client prefers, for mail of `scope`, with the query of `uri`.
///
/// # Errors
/// [`ApiError::NotFound`] where the token is not for the scope; the query is invalid; [`ApiError::TokenBusy`], [`ApiError::AddrBusy`]; as [`long_poll::wait`].
pub(super) async fn wait(
    state: &AppState,
    caller: MailCaller,
    scope: Scope,
    uri: Uri,
    preferred: PreferredWait,
) -> Result<Response, ApiError> {
    let caller = scope.admit(caller)?;
    let query = LongPollQuery::parse(&uri, preferred)?;
    // The URI keeps the buffer that the request was read into: it is released before the wait.
    drop(uri);
    let since = query.since.as_deref().map(|since| open_since(state, caller.tenant, since)).transpose()?;
    let start = since.map_or(Start::Newest, Start::After);
    let permits = WaitPermits::acquire(state, caller, &scope).await?;
    let follower = scope::follow(state, caller.into(), scope, start, Patience::Request);
    let outcome = long_poll::wait(state, follower, query).await;
    // Released before the answer is written, so that the client's next request, to whichever process,
    // finds them free.
    permits.release().await;
    let WaitOutcome { messages, cursor } = outcome?;
    let mut response = if messages.is_empty() {
        no_mail(&cursor)?
    } else {
        let emails = messages.iter().map(EmailSummary::from).collect();
        Json(NewEmails { emails, next_since: cursor }).into_response()
    };
    preferred.confirm(&mut response);
    Ok(response)
}

/// The answer to a wait that ends without mail, with the cursor that it has reached.
pub(super) fn no_mail(cursor: &str) -> Result<Response, ApiError> {
    let cursor = HeaderValue::try_from(cursor).map_err(|_not_ascii| ApiError::Internal)?;
    Ok((StatusCode::NO_CONTENT, [(NEXT_SINCE, cursor)]).into_response())
}

/// What bounds the waits that are open at once: one of a token, and ten of a tenant on an address.
pub(super) struct WaitPermits {
    token: Permit,
    address: Option<Permit>,
}

impl WaitPermits {
    /// Acquires the token's permit, and for an address the tenant's.
    ///
    /// # Errors
    /// [`ApiError::TokenBusy`], [`ApiError::AddrBusy`].
    pub(super) async fn acquire(
        state: &AppState,
        caller: LiveCaller,
        scope: &Scope,
    ) -> Result<Self, ApiError> {
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

    /// Returns when they are free for the client's next request.
    pub(super) async fn release(self) {
        if let Some(address) = self.address {
            address.release().await;
        }
        self.token.release().await;
    }
}
