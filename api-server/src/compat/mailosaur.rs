//! The API of Mailosaur (`docs/compat/mailosaur.md`).

mod message;
mod messages;
mod servers;

use axum::Router;
use axum::routing::{get, post};
use tempmail_model::surface::DropInSurface;

use crate::auth::DropInCaller;
use crate::http::error::{DropIn, DropInError};
use crate::state::AppState;

/// The surface, as a type.
#[derive(Debug)]
pub(super) struct Mailosaur;

impl DropIn for Mailosaur {
    const SURFACE: DropInSurface = DropInSurface::Mailosaur;
}

type Caller = DropInCaller<Mailosaur>;
type Error = DropInError<Mailosaur>;

/// The routes of the surface.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/servers", get(servers::list))
        .route("/api/servers/{id}", get(servers::get_server))
        .route("/api/messages", get(messages::list).delete(messages::delete_all))
        .route("/api/messages/search", post(messages::search))
        .route("/api/messages/{id}", get(messages::get_message).delete(messages::delete_message))
        .route("/api/files/email/{id}", get(messages::get_email))
        .route("/api/files/attachments/{id}", get(messages::get_attachment))
}
