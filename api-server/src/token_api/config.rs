//! `GET /v1/config`: what a client may read without a token.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use tempmail_model::address::{LOCAL_PART_MAX, MAILBOX_LOCAL_PART_PATTERN};
use tempmail_model::limits::LONG_POLL_SECONDS;
use utoipa::ToSchema;

use crate::http::client::PublicCaller;
use crate::http::error::V1Error;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The route of `/v1/config`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().get(
        "/v1/config",
        Operation::new("getConfig", Credential::None, "Show the public configuration")
            .json::<ServerConfig>(200, "The public configuration; may be cached for 60 s."),
        get_config,
    )
}

/// The public configuration.
#[derive(Debug, Serialize, ToSchema)]
struct ServerConfig {
    system_domains: Vec<DomainName>,
    mx_host: String,
    local_part_rules: LocalPartRules,
    /// Retention of mail that belongs to no tenant.
    ttl_seconds: u64,
    long_poll_seconds: u64,
}

/// The name of a system domain.
#[derive(Debug, Serialize, ToSchema)]
struct DomainName {
    domain: String,
    default: bool,
}

/// Rules for the local part of a new mailbox.
#[derive(Debug, Serialize, ToSchema)]
struct LocalPartRules {
    min_length: usize,
    max_length: usize,
    pattern: &'static str,
    reserved: Vec<String>,
}

async fn get_config(
    State(state): State<AppState>,
    _: PublicCaller,
) -> Result<([(HeaderName, HeaderValue); 1], Json<ServerConfig>), V1Error> {
    let domains = state.store.list_system_domains().await?;
    let config = ServerConfig {
        system_domains: domains
            .into_iter()
            .map(|domain| DomainName { domain: domain.name, default: domain.is_default })
            .collect(),
        mx_host: state.config.smtp.hostname.clone(),
        local_part_rules: LocalPartRules {
            min_length: 1,
            max_length: LOCAL_PART_MAX,
            pattern: MAILBOX_LOCAL_PART_PATTERN,
            reserved: state.reserved.sorted().into_iter().map(str::to_owned).collect(),
        },
        ttl_seconds: state.config.retention.free_hours.duration().unsigned_abs().as_secs(),
        long_poll_seconds: LONG_POLL_SECONDS,
    };
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"))], Json(config)))
}
