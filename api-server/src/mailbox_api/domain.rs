//! `GET /api/domains`.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::AppState;

#[derive(Debug, Serialize)]
pub(super) struct Domains {
    domains: Vec<Domain>,
}

#[derive(Debug, Serialize)]
struct Domain {
    id: Uuid,
    domain: String,
    default: bool,
    sort_order: i32,
}

/// The system domains; may be kept for 60 s.
pub(super) async fn list_domains(
    State(state): State<AppState>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<Domains>), ApiError> {
    let domains = state.store.list_system_domains().await?;
    let domains = domains
        .into_iter()
        .map(|domain| Domain {
            id: domain.id,
            domain: domain.name,
            default: domain.is_default,
            sort_order: domain.sort_order,
        })
        .collect();
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"))], Json(Domains { domains })))
}
