//! `/v1/me` and `/v1/domain/{domain}`: long-polls across what a tenant owns.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use tempmail_model::address::normalize_domain;

use super::wait::wait;
use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::listener::Scope;
use crate::state::AppState;

/// Waits up to 25 s for mail to any address that the tenant owns.
pub(super) async fn wait_on_owned(
    State(state): State<AppState>,
    caller: LiveCaller,
    uri: Uri,
) -> Result<Response, V1Error> {
    wait(&state, caller, Scope::Owned, uri).await
}

/// Waits up to 25 s for mail to any address under a verified domain of the tenant.
pub(super) async fn wait_on_domain(
    State(state): State<AppState>,
    caller: LiveCaller,
    domain: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, V1Error> {
    let Path(domain) = domain.map_err(|_no_utf8| V1Error::InvalidRequest)?;
    let domain = normalize_domain(&domain).map_err(|_malformed| V1Error::InvalidRequest)?;
    wait(&state, caller, Scope::Domain(domain), uri).await
}
