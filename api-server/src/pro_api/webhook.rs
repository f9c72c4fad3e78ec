//! `/pro/api/webhooks`: the webhooks of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_model::webhook::{EMAIL_RECEIVED, URL_MAX, WebhookSecret, WebhookUrl};
use tempmail_store::{CreateOutcome, NewWebhook, Webhook, WebhookDelivery};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{ProCaller, TenantCaller as _};
use crate::http::error::{ApiError, code};
use crate::http::json_body::{BodyError, JsonObject};
use crate::http::parameter::{PageLimit, PageNumber, PathId};
use crate::openapi::{Credential, Operation, Routes, path_id, query};
use crate::state::AppState;

/// Default of `limit`.
const DELIVERIES_DEFAULT: i64 = 50;
/// Highest `limit`; larger ones count as this.
const DELIVERIES_MAX: i64 = 100;

/// The routes of `/pro/api/webhooks`.
pub(super) fn routes() -> Routes<AppState> {
    let of_webhook = |id, summary| {
        Operation::new(id, Credential::Pro, summary)
            .parameter(path_id("Id of the webhook."))
            .fails(&[code::INVALID_REQUEST, code::NOT_FOUND])
    };
    let limit = query(
        "limit",
        "Attempts in one answer; above 100 counts as 100.",
        json!({"type": "integer", "minimum": 1, "default": DELIVERIES_DEFAULT}),
    );
    Routes::new()
        .get(
            "/pro/api/webhooks",
            Operation::new("listWebhooks", Credential::Pro, "List the webhooks")
                .page_of_owned()
                .json::<WebhookList>(200, "A page, newest first, without secrets."),
            list_webhooks,
        )
        .post(
            "/pro/api/webhooks",
            Operation::new("createWebhook", Credential::Pro, "Create a webhook")
                .body(json!({
                    "type": "object",
                    "required": ["url", "events"],
                    "properties": {
                        "url": {"type": "string", "maxLength": URL_MAX,
                                "pattern": "^[Hh][Tt][Tt][Pp][Ss]://[^\\s\\\\#]+$",
                                "description": "https with a public host name, not an IP address, and port 443 or 8443; no user info, no fragment. An installation may allow private networks: then any name and port.",
                                "examples": ["https://hooks.example/tempmail"]},
                        "events": {"type": "array", "minItems": 1,
                                   "items": {"type": "string", "enum": [EMAIL_RECEIVED]},
                                   "examples": [[EMAIL_RECEIVED]]},
                    },
                }))
                .json::<CreatedWebhook>(201, "The webhook, with its secret. This is the only time that the secret is shown.")
                .fails(&[code::INVALID_URL, code::INVALID_EVENTS, code::WEBHOOK_LIMIT_REACHED]),
            create_webhook,
        )
        .delete(
            "/pro/api/webhooks/{id}",
            of_webhook("deleteWebhook", "Delete a webhook")
                .empty(204, "The webhook is deleted.")
                .fails(&[code::MANAGED_BY_KUBERNETES]),
            delete_webhook,
        )
        .post(
            "/pro/api/webhooks/{id}/rotate",
            of_webhook("rotateWebhookSecret", "Rotate the secret of a webhook")
                .description("The old secret becomes invalid at once. The failure count is reset; a disabled webhook stays disabled.")
                .json::<RotatedSecret>(200, "The new secret. This is the only time that it is shown.")
                .fails(&[code::MANAGED_BY_KUBERNETES]),
            rotate_secret,
        )
        .get(
            "/pro/api/webhooks/{id}/deliveries",
            of_webhook("listWebhookDeliveries", "List the last delivery attempts of a webhook")
                .description("Attempts are kept for 7 days.")
                .parameter(limit)
                .json::<DeliveryList>(200, "The last attempts, newest first."),
            list_deliveries,
        )
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct ListedWebhook {
    id: Uuid,
    url: String,
    events: Vec<String>,
    /// `active` or `disabled`.
    status: String,
    /// Consecutive failed attempts.
    failure_count: i32,
    /// When an event was last delivered.
    last_triggered_at: Option<String>,
    created_at: String,
}

/// A page of webhooks, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct WebhookList {
    webhooks: Vec<ListedWebhook>,
}

/// A new webhook.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedWebhook {
    id: Uuid,
    url: String,
    events: [&'static str; 1],
    /// Signs the webhook's events. This is the only time that it is shown.
    secret: String,
    /// `active`.
    status: &'static str,
    created_at: String,
}

/// The new secret of a webhook.
#[derive(Debug, Serialize, ToSchema)]
struct RotatedSecret {
    id: Uuid,
    /// Signs the webhook's events. This is the only time that it is shown.
    secret: String,
}

/// An attempt to deliver an event.
#[derive(Debug, Serialize, ToSchema)]
struct Delivery {
    id: Uuid,
    event_type: String,
    event_id: String,
    /// Status of the receiver's answer; 0 where there was none.
    status_code: i32,
    /// Why the attempt failed.
    error: Option<String>,
    /// Why TLS failed: `expired`, `unknown_issuer`, `name_mismatch` or `handshake`.
    detail: Option<String>,
    /// Whether the event is not sent any more, although it was not delivered: its tenth attempt failed.
    given_up: bool,
    /// Number of the attempt for its event, from 1.
    attempt: i32,
    duration_ms: i32,
    created_at: String,
}

/// Attempts, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct DeliveryList {
    deliveries: Vec<Delivery>,
}

impl From<Webhook> for ListedWebhook {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url,
            events: webhook.events,
            status: webhook.status,
            failure_count: webhook.failure_count,
            last_triggered_at: webhook.last_triggered_at.map(timestamp),
            created_at: timestamp(webhook.created_at),
        }
    }
}

impl From<WebhookDelivery> for Delivery {
    fn from(delivery: WebhookDelivery) -> Self {
        Self {
            id: delivery.id,
            created_at: timestamp(delivery.created_at()),
            event_type: delivery.event_type,
            event_id: delivery.event_id,
            status_code: delivery.status_code,
            error: delivery.error,
            detail: delivery.detail,
            given_up: delivery.given_up,
            attempt: delivery.attempt,
            duration_ms: delivery.duration_ms,
        }
    }
}

async fn list_webhooks(
    State(state): State<AppState>,
    caller: ProCaller,
    PageNumber(page): PageNumber,
) -> Result<Json<WebhookList>, ApiError> {
    let webhooks = state.store.list_webhooks(caller.tenant, page).await?;
    Ok(Json(WebhookList { webhooks: webhooks.into_iter().map(Into::into).collect() }))
}

async fn create_webhook(
    State(state): State<AppState>,
    caller: ProCaller,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedWebhook>), ApiError> {
    let url = body.text("url")?;
    let events = body.take("events").ok_or(BodyError::Missing { field: "events" })?;
    let url =
        WebhookUrl::parse(&url, &state.config.webhooks.allowed_networks).map_err(ApiError::InvalidUrl)?;
    let events = parse_events(&events)?;
    state.limits.admit_change(caller.tenant).await?;
    let secret = new_secret()?;
    let now = state.clock.now();
    let id = new_id(now);
    let sealed = state.webhook_secrets.seal(id, secret.expose());
    let new = NewWebhook { id, tenant: caller.tenant, url: url.as_str(), events: &events, secret: &sealed };
    match state.store.acting(caller.actor()).create_webhook(new, now).await? {
        CreateOutcome::Created => {}
        CreateOutcome::LimitReached => return Err(ApiError::WebhookLimitReached),
        CreateOutcome::TenantDisabled => return Err(ApiError::AccountDisabled),
    }
    let created = CreatedWebhook {
        id,
        url: url.as_str().to_owned(),
        events,
        secret: secret.expose().to_owned(),
        status: "active",
        created_at: timestamp(now),
    };
    Ok((StatusCode::CREATED, Json(created)))
}

async fn delete_webhook(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    state.store.acting(caller.actor()).delete_webhook(caller.tenant, id).await??;
    Ok(StatusCode::NO_CONTENT)
}

async fn rotate_secret(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Json<RotatedSecret>, ApiError> {
    state.limits.admit_change(caller.tenant).await?;
    let secret = new_secret()?;
    let sealed = state.webhook_secrets.seal(id, secret.expose());
    let store = state.store.acting(caller.actor());
    store.rotate_webhook_secret(caller.tenant, id, &sealed, state.clock.now()).await??;
    Ok(Json(RotatedSecret { id, secret: secret.expose().to_owned() }))
}

async fn list_deliveries(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
    PageLimit(limit): PageLimit,
) -> Result<Json<DeliveryList>, ApiError> {
    let limit = limit.unwrap_or(DELIVERIES_DEFAULT).min(DELIVERIES_MAX);
    let found = state.store.list_webhook_deliveries(caller.tenant, id, limit, state.clock.now()).await?;
    let deliveries = found.ok_or(ApiError::NotFound)?;
    Ok(Json(DeliveryList { deliveries: deliveries.into_iter().map(Into::into).collect() }))
}

/// Parses `events`; duplicates are removed.
fn parse_events(value: &Value) -> Result<[&'static str; 1], ApiError> {
    let names = value.as_array().filter(|names| !names.is_empty()).ok_or(ApiError::InvalidEvents)?;
    if names.iter().all(|name| name == EMAIL_RECEIVED) {
        Ok([EMAIL_RECEIVED])
    } else {
        Err(ApiError::InvalidEvents)
    }
}

fn new_secret() -> Result<WebhookSecret, ApiError> {
    WebhookSecret::generate().map_err(|error| {
        tracing::error!("the operating system provides no randomness: {error}");
        ApiError::Internal
    })
}
