//! API v1 and v2 of MailHog (`docs/compat/mailhog.md`).

mod message;
mod messages;

use axum::Router;
use axum::routing::get;
use tempmail_model::surface::DropInSurface;

use crate::auth::DropInCaller;
use crate::http::error::{DropIn, DropInError};
use crate::state::AppState;

/// The surface, as a type.
#[derive(Debug)]
pub(super) struct Mailhog;

impl DropIn for Mailhog {
    const SURFACE: DropInSurface = DropInSurface::MailHog;
}

type Caller = DropInCaller<Mailhog>;
type Error = DropInError<Mailhog>;

/// The routes of the surface.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/messages", get(messages::list_all).delete(messages::delete_all))
        .route("/api/v1/messages/{id}", get(messages::get_message).delete(messages::delete_message))
        .route("/api/v1/messages/{id}/download", get(messages::download))
        .route("/api/v1/messages/{id}/mime/part/{part}/download", get(messages::download_part))
        .route("/api/v2/messages", get(messages::list))
        .route("/api/v2/search", get(messages::search))
}
