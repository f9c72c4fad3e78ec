//! A long-poll from its places to its answer.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::{LONG_POLLS_PER_ADDRESS, LONG_POLLS_PER_TOKEN};
use utoipa::ToSchema;

use super::summary::EmailSummary;
use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::listener::{Listener, Scope};
use crate::long_poll::{self, LongPollQuery, Outcome};
use crate::state::AppState;

/// Carries the position that a wait without mail has reached.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");

/// New mail, and where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewEmails {
    emails: Vec<EmailSummary>,
    next_since: String,
}

/// Waits up to 25 s for mail of `scope`, as the query of `uri` says.
pub(super) async fn wait(
    state: &AppState,
    caller: LiveCaller,
    scope: Scope,
    uri: Uri,
) -> Result<Response, V1Error> {
    let query = LongPollQuery::of(&uri)?;
    // It is a slice of the octets that were read: nothing is to hold them while this waits.
    drop(uri);
    let since = match &query.since {
        Some(cursor) => {
            Some(state.cursors.open(caller.tenant, cursor).map_err(|_foreign| V1Error::InvalidRequest)?)
        }
        None => None,
    };
    let places = Places::take(state, caller, &scope).await?;
    let waited = long_poll::wait(state, Listener::new(state, caller, scope), query, since).await;
    // Given back before the answer is written: a client that asks again at once, wherever it is
    // sent, never meets its own place.
    places.release().await;
    Ok(match waited? {
        Outcome::Mail { messages, position } => Json(NewEmails {
            emails: messages.iter().map(EmailSummary::from).collect(),
            next_since: state.cursors.seal(caller.tenant, position),
        })
        .into_response(),
        Outcome::Nothing { position } => {
            let cursor = HeaderValue::try_from(state.cursors.seal(caller.tenant, position))
                .map_err(|_not_ascii| V1Error::Internal)?;
            (StatusCode::NO_CONTENT, [(NEXT_SINCE, cursor)]).into_response()
        }
    })
}

/// The places that a wait takes.
struct Places {
    of_token: Permit,
    of_address: Option<Permit>,
}

impl Places {
    async fn take(state: &AppState, caller: LiveCaller, scope: &Scope) -> Result<Self, V1Error> {
        let of_token = PermitKey::TokenWaits(caller.token);
        let of_token = state.bus.acquire(of_token, LONG_POLLS_PER_TOKEN).await.ok_or(V1Error::TokenBusy)?;
        let mut of_address = None;
        if let Scope::Address(address) = scope {
            let key = PermitKey::AddressWaits { tenant: caller.tenant, address: address.inbox_key() };
            of_address = state.bus.acquire(key, LONG_POLLS_PER_ADDRESS).await;
            if of_address.is_none() {
                of_token.release().await;
                return Err(V1Error::AddrBusy);
            }
        }
        Ok(Self { of_token, of_address })
    }

    async fn release(self) {
        if let Some(of_address) = self.of_address {
            of_address.release().await;
        }
        self.of_token.release().await;
    }
}
