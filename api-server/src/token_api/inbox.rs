//! `/v1/inbox/{address}`: the long-poll, and clearing an inbox.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tempmail_model::address::{AddressError, RecipientAddress};
use tempmail_store::InboxQuery;

use super::wait::wait;
use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::listener::Scope;
use crate::state::AppState;

/// Waits up to 25 s for mail to an address.
pub(super) async fn wait_on_inbox(
    State(state): State<AppState>,
    caller: LiveCaller,
    address: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, V1Error> {
    let address = Arc::new(read_address(address)?);
    wait(&state, caller, Scope::Address(address), uri).await
}

/// Deletes every message that an address shows.
pub(super) async fn clear_inbox(
    State(state): State<AppState>,
    caller: LiveCaller,
    address: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, V1Error> {
    let address = read_address(address)?;
    let question = InboxQuery {
        tenant: caller.tenant,
        address: &address,
        reserved: state.reserved.reservation_of(address.base_local_part()),
    };
    if state.store.clear_inbox(question, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(V1Error::NotFound)
    }
}

fn read_address(path: Result<Path<String>, PathRejection>) -> Result<RecipientAddress, V1Error> {
    let Path(text) = path.map_err(|_no_utf8| V1Error::InvalidRequest)?;
    parse_address(&text)
}

/// An address: 400 where it is malformed, 404 where it is one that no server here can have.
pub(super) fn parse_address(text: &str) -> Result<RecipientAddress, V1Error> {
    RecipientAddress::parse(text).map_err(|error| match error {
        AddressError::Malformed => V1Error::InvalidRequest,
        AddressError::NeedsQuotes | AddressError::AddressLiteral => V1Error::NotFound,
    })
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
