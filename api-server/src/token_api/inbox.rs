//! `/v1/inbox/{address}`, `/v1/domain/{domain}` and `/v1/me`: long-polls; and the deletion of all mail of an address.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::json;
use tempmail_model::address::{RecipientAddress, normalize_domain};
use tempmail_store::InboxQuery;

use super::address::parse_address;
use super::wait::{NewEmails, wait};
use crate::auth::MailCaller;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, V1Error, code};
use crate::http::prefer::PreferredWait;
use crate::openapi::{Credential, Operation, Routes};
use crate::realtime::long_poll;
use crate::realtime::scope::Scope;
use crate::state::AppState;

/// The routes of `/v1/inbox`, `/v1/domain` and `/v1/me`.
pub(super) fn routes() -> Routes<AppState> {
    let of_inbox = |id, summary| {
        let address = json!({"name": "address", "in": "path", "required": true,
                             "description": "The exact address.",
                             "schema": {"type": "string", "pattern": "^.+@.+$"}});
        Operation::new(id, Credential::Live, summary)
            .parameter(address)
            .fails(&[code::INVALID_REQUEST, code::NOT_FOUND])
    };
    let wait_for = |id, summary| long_poll::described(Operation::new(id, Credential::Live, summary));
    Routes::new()
        .get(
            "/v1/inbox/{address}",
            long_poll::described(of_inbox("waitOnInbox", "Wait for mail to an address"))
                .json::<NewEmails>(200, "There is mail, newest first.")
                .fails(&[code::ADDR_BUSY]),
            wait_on_inbox,
        )
        .delete(
            "/v1/inbox/{address}",
            of_inbox("clearInbox", "Delete every message of an address")
                .empty(204, "The messages are deleted."),
            clear_inbox,
        )
        .get(
            "/v1/me",
            wait_for("waitOnOwned", "Wait for mail to everything the tenant owns")
                .description("The tenant's mailboxes, and every address under its verified custom domains.")
                .json::<NewEmails>(200, "There is mail, newest first."),
            wait_on_owned,
        )
        .get(
            "/v1/domain/{domain}",
            wait_for("waitOnDomain", "Wait for mail to every address under a domain")
                .parameter(json!({"name": "domain", "in": "path", "required": true,
                                  "description": "A verified custom domain of the tenant.",
                                  "schema": {"type": "string", "minLength": 1}}))
                .json::<NewEmails>(200, "There is mail, newest first.")
                .fails(&[code::NOT_FOUND]),
            wait_on_domain,
        )
}

pub(super) async fn wait_on_inbox(
    State(state): State<AppState>,
    _: EndsWithInput,
    caller: MailCaller,
    address: Result<Path<String>, PathRejection>,
    preferred: PreferredWait,
    uri: Uri,
) -> Result<Response, V1Error> {
    let address = Arc::new(path_address(&state, address)?);
    Ok(wait(&state, caller, Scope::Address(address), uri, preferred).await?)
}

pub(super) async fn wait_on_owned(
    State(state): State<AppState>,
    _: EndsWithInput,
    caller: MailCaller,
    preferred: PreferredWait,
    uri: Uri,
) -> Result<Response, V1Error> {
    Ok(wait(&state, caller, Scope::Owned, uri, preferred).await?)
}

pub(super) async fn wait_on_domain(
    State(state): State<AppState>,
    _: EndsWithInput,
    caller: MailCaller,
    domain: Result<Path<String>, PathRejection>,
    preferred: PreferredWait,
    uri: Uri,
) -> Result<Response, V1Error> {
    let domain = domain.ok().and_then(|Path(domain)| normalize_domain(&domain).ok());
    let domain = domain.ok_or(ApiError::InvalidRequest("The domain is malformed.".into()))?;
    Ok(wait(&state, caller, Scope::Domain(domain), uri, preferred).await?)
}

async fn clear_inbox(
    State(state): State<AppState>,
    caller: MailCaller,
    address: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, V1Error> {
    let address = path_address(&state, address)?;
    let query = InboxQuery {
        tenant: caller.for_address(&address)?.tenant,
        address: &address,
        reserved: state.reserved.reservation_of(address.base_local_part()),
    };
    if state.begin_deletion().clear_inbox(query, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound.into())
    }
}

fn path_address(
    state: &AppState,
    path: Result<Path<String>, PathRejection>,
) -> Result<RecipientAddress, ApiError> {
    let Path(text) = path.map_err(|_not_utf8| ApiError::InvalidRequest("The path must be UTF-8.".into()))?;
    parse_address(state.config.address_syntax(), &text)
}
