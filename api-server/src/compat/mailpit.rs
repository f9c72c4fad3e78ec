//! API v1 of Mailpit (`docs/compat/mailpit.md`).

mod message;
mod messages;
mod query;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;

use crate::auth::DropInCaller;
use crate::compat::mail::TenantMail;
use crate::http::error::{DropIn, DropInError};
use crate::state::AppState;

/// The surface, as a type.
#[derive(Debug)]
pub(super) struct Mailpit;

impl DropIn for Mailpit {
    const SURFACE: DropInSurface = DropInSurface::Mailpit;
}

type Caller = DropInCaller<Mailpit>;
type Error = DropInError<Mailpit>;

/// The routes of the surface.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/info", get(get_info))
        .route("/api/v1/webui", get(get_configuration))
        .route("/api/v1/tags", get(list_tags))
        .route("/api/v1/messages", get(messages::list).put(messages::mark).delete(messages::delete))
        .route("/api/v1/search", get(messages::search).delete(messages::delete_found))
        .route("/api/v1/message/{id}", get(message::get_message))
        .route("/api/v1/message/{id}/headers", get(message::get_headers))
        .route("/api/v1/message/{id}/raw", get(message::get_raw))
        .route("/api/v1/message/{id}/part/{part}", get(message::get_part))
        .route("/api/v1/message/{id}/part/{part}/thumb", get(message::get_thumbnail))
        .route("/view/{file}", get(message::view))
        // Clients join the address and the path with a slash more, which Mailpit takes away.
        .route("//view/{file}", get(message::view))
}

/// What clients read of the server: its version, and how many messages the tenant has. What concerns other tenants is 0.
async fn get_info(State(state): State<AppState>, caller: Caller) -> Result<Json<Value>, Error> {
    let count = TenantMail::of(state, &caller).count().await?;
    let version = concat!("tempmail ", env!("CARGO_PKG_VERSION"));
    Ok(Json(json!({
        "Version": version,
        "LatestVersion": version,
        "Database": "",
        "DatabaseSize": 0,
        "Messages": count.total,
        "Unread": count.unread,
        "Tags": {},
        "RuntimeStats": {
            "Uptime": 0,
            "Memory": 0,
            "MessagesDeleted": 0,
            "SMTPAccepted": 0,
            "SMTPAcceptedSize": 0,
            "SMTPRejected": 0,
            "SMTPIgnored": 0,
        },
    })))
}

/// What the page of Mailpit would offer: nothing of it is there.
async fn get_configuration(_: Caller) -> Json<Value> {
    Json(json!({
        "Label": "",
        "MessageRelay": {
            "Enabled": false,
            "SMTPServer": "",
            "ReturnPath": "",
            "AllowedRecipients": "",
            "BlockedRecipients": "",
            "OverrideFrom": "",
            "PreserveMessageIDs": false,
        },
        "SpamAssassin": false,
        "ChaosEnabled": false,
        "DuplicatesIgnored": false,
        "HideDeleteAllButton": false,
    }))
}

/// Messages have no tags.
async fn list_tags(_: Caller) -> Json<Value> {
    Json(json!([]))
}
