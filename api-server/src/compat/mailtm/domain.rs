//! `/domains`: the system domains, at which anybody creates a mailbox.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_model::id::id_time;
use tempmail_model::timestamp::timestamp;
use tempmail_store::SystemDomain;

use super::representation::Representation;
use super::{Error, Mailtm};
use crate::compat::request::{Anyone, Segments};
use crate::http::error::ApiError;
use crate::state::AppState;

/// Lists the domains, on one page.
pub(super) async fn list(
    State(state): State<AppState>,
    _: Anyone<Mailtm>,
    form: Representation,
) -> Result<Response, Error> {
    let domains = state.store.list_system_domains().await?;
    let total = domains.len();
    Ok(form.collection("Domain", "/domains", domains.iter().map(element).collect(), total, 1))
}

/// One domain.
pub(super) async fn get_domain(
    State(state): State<AppState>,
    _: Anyone<Mailtm>,
    form: Representation,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<Response, Error> {
    let domains = state.store.list_system_domains().await?;
    let domain = domains.iter().find(|domain| domain.id.to_string() == id).ok_or(ApiError::NotFound)?;
    Ok(form.object("Domain", element(domain)))
}

fn element(domain: &SystemDomain) -> Value {
    let created_at = timestamp(id_time(domain.id).unwrap_or(Timestamp::UNIX_EPOCH));
    json!({
        "@id": format!("/domains/{}", domain.id),
        "@type": "Domain",
        "id": domain.id,
        "domain": domain.name,
        "isActive": true,
        "isPrivate": false,
        "createdAt": created_at,
        "updatedAt": created_at,
    })
}
