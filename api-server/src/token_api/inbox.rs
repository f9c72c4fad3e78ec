//! `/v1/inbox/{address}`: the long-poll, and clearing an inbox.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tempmail_bus::SlotKey;
use tempmail_model::address::{AddressError, RecipientAddress};
use tempmail_model::limits::{WAITS_PER_ADDRESS, WAITS_PER_TOKEN};
use tempmail_store::{InboxQuestion, MessageRow};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::long_poll::{self, InboxWait, LongPollQuery, Outcome};
use crate::message_view::timestamp;
use crate::state::AppState;

/// Carries the position that a wait without mail has reached.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");

/// A message as long-polls list it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmailSummary {
    id: Uuid,
    address: String,
    from_email: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
}

impl From<MessageRow> for EmailSummary {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            address: row.address,
            from_email: row.from_email,
            subject: row.subject,
            preview_text: row.preview,
            size: row.size,
        }
    }
}

/// New mail, and where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewEmails {
    emails: Vec<EmailSummary>,
    next_since: String,
}

/// Waits up to 25 s for mail to an address.
pub(super) async fn wait_on_inbox(
    State(state): State<AppState>,
    caller: LiveCaller,
    address: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, V1Error> {
    let address = Arc::new(read_address(address)?);
    let query = LongPollQuery::of(&uri)?;
    let since = match &query.since {
        Some(cursor) => Some(open_cursor(&state, caller.tenant, cursor)?),
        None => None,
    };
    let outcome = {
        // Given back at the end of this block, before the answer is written: a client that
        // asks again at once never meets its own place.
        let _of_token = state
            .bus
            .try_take(SlotKey::TokenWaits(caller.token), WAITS_PER_TOKEN)
            .ok_or(V1Error::TokenBusy)?;
        let on_address = SlotKey::AddressWaits { tenant: caller.tenant, address: address.inbox_key() };
        let _of_address = state.bus.try_take(on_address, WAITS_PER_ADDRESS).ok_or(V1Error::AddrBusy)?;
        let wait = InboxWait { token: caller.token, tenant: caller.tenant, address, query, since };
        long_poll::wait_on_inbox(&state, wait).await?
    };
    Ok(match outcome {
        Outcome::Mail { messages, position } => Json(NewEmails {
            emails: messages.into_iter().map(EmailSummary::from).collect(),
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

/// Deletes every message that an address shows.
pub(super) async fn clear_inbox(
    State(state): State<AppState>,
    caller: LiveCaller,
    address: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, V1Error> {
    let address = read_address(address)?;
    let question = InboxQuestion {
        tenant: caller.tenant,
        address: &address,
        reserved: state.reserved.of(address.base_local_part()),
    };
    if state.store.clear_inbox(question, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(V1Error::NotFound)
    }
}

/// The address of a path: 400 where it is malformed, 404 where it is one that no server here
/// can have.
fn read_address(path: Result<Path<String>, PathRejection>) -> Result<RecipientAddress, V1Error> {
    let Path(text) = path.map_err(|_no_utf8| V1Error::InvalidRequest)?;
    RecipientAddress::parse(&text).map_err(|error| match error {
        AddressError::Malformed => V1Error::InvalidRequest,
        AddressError::NeedsQuotes | AddressError::AddressLiteral => V1Error::NotFound,
    })
}

fn open_cursor(state: &AppState, tenant: Uuid, cursor: &str) -> Result<i64, V1Error> {
    state.cursors.open(tenant, cursor).map_err(|_foreign| V1Error::InvalidRequest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, V1Error> {
        read_address(Ok(Path(text.to_owned()))).map(|address| address.as_str().to_owned())
    }

    #[test]
    fn a_malformed_address_is_told_from_one_that_is_not_here() {
        assert_eq!(read("Name+Tag@Inbox.Localhost").as_deref(), Ok("name+tag@inbox.localhost"));
        for malformed in ["name", "@inbox.localhost", "a b@inbox.localhost", "a@-x.localhost"] {
            assert_eq!(read(malformed), Err(V1Error::InvalidRequest), "{malformed}");
        }
        for elsewhere in ["a@[192.0.2.1]", "\"a b\"@inbox.localhost"] {
            assert_eq!(read(elsewhere), Err(V1Error::NotFound), "{elsewhere}");
        }
    }
}
