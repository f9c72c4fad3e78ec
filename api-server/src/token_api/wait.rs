//! A long-poll from its permits to its answer.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::wait_permits::WaitPermits;
use crate::auth::MailCaller;
use crate::http::error::ApiError;
use crate::http::prefer::PreferredWait;
use crate::message::EmailSummary;
use crate::realtime::cursor::open_since;
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
    let permits = WaitPermits::acquire(state, caller, &scope).await?;
    let outcome = long_poll::wait(state, Subscription::new(state, caller.into(), scope), query, since).await;
    // Released before the answer is written, so that the client's next request, to whichever process,
    // finds them free.
    permits.release().await;
    let (outcome, generation) = outcome?;
    let generation = state.arrivals.generations().id(generation);
    let mut response = match outcome {
        WaitOutcome::Mail { messages, position } => Json(NewEmails {
            emails: messages.iter().map(EmailSummary::from).collect(),
            next_since: state.cursors.seal(caller.tenant, generation, position),
        })
        .into_response(),
        WaitOutcome::Empty { position } => no_mail(&state.cursors.seal(caller.tenant, generation, position))?,
    };
    preferred.confirm(&mut response);
    Ok(response)
}

/// The answer to a wait that ends without mail, with the cursor that it has reached.
pub(super) fn no_mail(cursor: &str) -> Result<Response, ApiError> {
    let cursor = HeaderValue::try_from(cursor).map_err(|_not_ascii| ApiError::Internal)?;
    Ok((StatusCode::NO_CONTENT, [(NEXT_SINCE, cursor)]).into_response())
}
