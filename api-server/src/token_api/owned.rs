//! `/v1/me` and `/v1/domain/{domain}`: wait for mail to what a tenant owns.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde_json::json;
use tempmail_model::address::normalize_domain;

use super::wait::{NewEmails, wait};
use crate::auth::MailCaller;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, V1Error, code};
use crate::http::prefer::PreferredWait;
use crate::openapi::{Credential, Operation, Routes};
use crate::realtime::long_poll;
use crate::realtime::subscription::Scope;
use crate::state::AppState;

/// The routes of `/v1/me` and `/v1/domain`.
pub(super) fn routes() -> Routes<AppState> {
    let wait_for = |id, summary| long_poll::described(Operation::new(id, Credential::Live, summary));
    Routes::new()
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

async fn wait_on_owned(
    State(state): State<AppState>,
    _: EndsWithInput,
    caller: MailCaller,
    preferred: PreferredWait,
    uri: Uri,
) -> Result<Response, V1Error> {
    Ok(wait(&state, caller, Scope::Owned, uri, preferred).await?)
}

async fn wait_on_domain(
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
