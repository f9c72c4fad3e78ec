//! `/api/v1/info`, `/webui` and `/tags`.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{Caller, Error};
use crate::compat::mail::TenantMail;
use crate::state::AppState;

/// What clients read of the server: its version, and how many messages the tenant has. What concerns other tenants is 0.
pub(super) async fn get_info(State(state): State<AppState>, caller: Caller) -> Result<Json<Value>, Error> {
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
pub(super) async fn get_configuration(_: Caller) -> Json<Value> {
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
pub(super) async fn list_tags(_: Caller) -> Json<Value> {
    Json(json!([]))
}
