//! API v1 of Mailpit (`docs/compat/mailpit.md`).

mod info;
mod message;
mod messages;
mod query;
mod summary;
mod view;

use axum::Router;
use axum::routing::get;
use tempmail_model::surface::DropInSurface;

use crate::auth::DropInCaller;
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
        .route("/api/v1/info", get(info::get_info))
        .route("/api/v1/webui", get(info::get_configuration))
        .route("/api/v1/tags", get(info::list_tags))
        .route("/api/v1/messages", get(messages::list).put(messages::mark).delete(messages::delete))
        .route("/api/v1/search", get(messages::search).delete(messages::delete_found))
        .route("/api/v1/message/{id}", get(message::get_message))
        .route("/api/v1/message/{id}/headers", get(message::get_headers))
        .route("/api/v1/message/{id}/raw", get(message::get_raw))
        .route("/api/v1/message/{id}/part/{part}", get(message::get_part))
        .route("/api/v1/message/{id}/part/{part}/thumb", get(message::get_thumbnail))
        .route("/view/{file}", get(view::view))
        // Clients join the address and the path with a slash more, which Mailpit takes away.
        .route("//view/{file}", get(view::view))
}
