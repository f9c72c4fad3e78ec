//! `GET /api/domains`.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::client::PublicCaller;
use crate::http::error::ApiError;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The route of `/api/domains`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().get(
        "/api/domains",
        Operation::new("listSystemDomains", Credential::None, "List the system domains")
            .json::<SystemDomains>(200, "The domains, in their order; may be cached for 60 s."),
        list_domains,
    )
}

/// The system domains, in their order.
#[derive(Debug, Serialize, ToSchema)]
struct SystemDomains {
    domains: Vec<SystemDomain>,
}

/// A system domain.
#[derive(Debug, Serialize, ToSchema)]
struct SystemDomain {
    id: Uuid,
    domain: String,
    default: bool,
    sort_order: i32,
}

async fn list_domains(
    State(state): State<AppState>,
    _: PublicCaller,
) -> Result<([(HeaderName, HeaderValue); 1], Json<SystemDomains>), ApiError> {
    let domains = state.store.list_system_domains().await?;
    let domains = domains
        .into_iter()
        .map(|domain| SystemDomain {
            id: domain.id,
            domain: domain.name,
            default: domain.is_default,
            sort_order: domain.sort_order,
        })
        .collect();
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"))], Json(SystemDomains { domains })))
}
