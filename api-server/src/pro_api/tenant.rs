//! `/pro/api/domains`, `/pro/api/tokens` and `GET /pro/api/usage`: the custom domains of a tenant, its Pro and live tokens,
//! and what it has, against what it may have.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use tempmail_store::{LimitUsage, Tenant};
use utoipa::ToSchema;

use crate::auth::ProCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::parameter::PathId;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::resources::api_token::{self, CreatedToken, TokenManager as _, TokenRoutes};
use crate::resources::custom_domain::{self, CheckedDomain, DomainRoutes};
use crate::state::AppState;

/// The routes of the domains, tokens and usage of a tenant.
pub(super) fn routes() -> Routes<AppState> {
    domain_routes().merge(token_routes()).merge(usage_route())
}

/// The routes of `/pro/api/domains`.
fn domain_routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    custom_domain::routes::<ProCaller>(DomainRoutes {
        collection: "/pro/api/domains",
        item: "/pro/api/domains/{id}",
        list: operation("listDomains", "List the custom domains"),
        create: operation("createDomain", "Add a custom domain"),
        delete: operation("deleteDomain", "Delete a custom domain with its mailboxes and mail"),
    })
    .post(
        "/pro/api/domains/{id}/verify",
        operation("verifyDomain", "Check the DNS records of a custom domain now")
            .description("In any status; at most once in 10 s per domain.")
            .parameter(path_id("Id of the domain."))
            .json::<CheckedDomain>(200, "The result of the check, and the domain after it.")
            .fails(&[code::INVALID_REQUEST, code::INVALID_DOMAIN, code::NOT_FOUND]),
        verify_domain,
    )
}

async fn verify_domain(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Json<CheckedDomain>, ApiError> {
    Ok(Json(custom_domain::check(&state, &caller, id).await?))
}

/// The routes of `/pro/api/tokens`.
fn token_routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    let shared = api_token::routes::<ProCaller>(TokenRoutes {
        collection: "/pro/api/tokens",
        item: "/pro/api/tokens/{id}",
        list: operation("listTokens", "List the API tokens")
            .description("Of both kinds. Revoked and expired tokens are listed for 7 more days."),
        revoke: operation("revokeToken", "Revoke an API token"),
    });
    shared.post(
        "/pro/api/tokens",
        operation("createToken", "Create an API token")
            .description("A token for one `address` is minted by a live token: `POST /v1/tokens`.")
            .body(ProCaller::KINDS.schema())
            .json::<CreatedToken>(201, "The token. This is the only time that it is shown.")
            .fails(&[code::TOKEN_LIMIT_REACHED]),
        create_token,
    )
}

async fn create_token(
    State(state): State<AppState>,
    caller: ProCaller,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    // Whoever asks for less must not get a token that may do everything.
    if api_token::not_null(body.take("address")).is_some() {
        let how = "A token for one `address` is minted by a live token: POST /v1/tokens.";
        return Err(ApiError::InvalidRequest(how.into()));
    }
    Ok((StatusCode::CREATED, Json(api_token::create(&state, &caller, body).await?)))
}

/// The route of `/pro/api/usage`.
fn usage_route() -> Routes<AppState> {
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
