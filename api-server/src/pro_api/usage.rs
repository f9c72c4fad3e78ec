//! `GET /pro/api/usage`: what a tenant has, against what it may have.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tempmail_store::{LimitUsage, Tenant};
use utoipa::ToSchema;

use crate::auth::ProCaller;
use crate::http::error::ApiError;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The route of `/pro/api/usage`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().get(
        "/pro/api/usage",
        Operation::new("getUsage", Credential::Pro, "Show what the tenant has, and may have")
            .json::<Usage>(200, "Usage and limits."),
        get_usage,
    )
}

/// What a tenant has, and may have.
#[derive(Debug, Serialize, ToSchema)]
struct Usage {
    mailboxes: Count,
    /// Custom domains.
    domains: Count,
    webhooks: Count,
    /// API tokens that are neither revoked nor expired.
    tokens: Count,
    /// Of mail on the disk, including mail that is just expiring or being deleted. A tenant may store what is left.
    bytes: Bytes,
    /// Bytes of each new mailbox.
    mailbox_bytes: i64,
    /// How long new mail is kept, in hours.
    retention_hours: i16,
}

/// How many of something a tenant has, and may have.
#[derive(Debug, Serialize, ToSchema)]
struct Count {
    used: i64,
    limit: i32,
}

/// Bytes that a tenant stores.
#[derive(Debug, Serialize, ToSchema)]
struct Bytes {
    used: i64,
    /// `null`: the limit is that of the installation.
    limit: Option<i64>,
}

impl From<LimitUsage> for Count {
    fn from(LimitUsage { used, limit }: LimitUsage) -> Self {
        Self { used, limit }
    }
}

impl From<Tenant> for Usage {
    fn from(tenant: Tenant) -> Self {
        Self {
            mailboxes: tenant.mailboxes.into(),
            domains: tenant.domains.into(),
            webhooks: tenant.webhooks.into(),
            tokens: tenant.tokens.into(),
            bytes: Bytes { used: tenant.stored_bytes, limit: None },
            mailbox_bytes: tenant.mailbox_bytes,
            retention_hours: tenant.retention.hours(),
        }
    }
}

async fn get_usage(State(state): State<AppState>, caller: ProCaller) -> Result<Json<Usage>, ApiError> {
    let tenant = state.store.find_tenant_by_id(caller.tenant, state.clock.now()).await?;
    // It was removed since the credential was read.
    Ok(Json(tenant.ok_or(ApiError::InvalidToken)?.into()))
}
