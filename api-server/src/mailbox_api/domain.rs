//! `GET /api/domains`.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::AppState;

/// The system domains, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemDomains {
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

/// The system domains; may be kept for 60 s.
pub(super) async fn list_domains(
    State(state): State<AppState>,
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
