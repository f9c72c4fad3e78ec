//! `/v1`: the token API. Inboxes are addressed by e-mail address; nothing is created first.

mod config;
mod email;
mod inbox;

use axum::Router;
use axum::routing::get;

use crate::state::AppState;

/// The routes of `/v1`.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/config", get(config::get_config))
        .route("/v1/inbox/{address}", get(inbox::wait_on_inbox).delete(inbox::clear_inbox))
        .route("/v1/email/{id}", get(email::get_email).delete(email::delete_email))
        .route("/v1/email/{id}/raw", get(email::get_raw))
        .route("/v1/email/{id}/attachments/{index}", get(email::get_attachment))
}
