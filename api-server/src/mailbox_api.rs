//! `/api`: mailboxes and their messages, for whoever has the address and password.

mod account;
mod domain;
mod json_body;
mod message;
mod sign_in;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::routing::{get, post, put};
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::AppState;

/// The routes of `/api`.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/api/domains", get(domain::list_domains))
        .route("/api/accounts", post(account::create_account))
        .route("/api/token", post(sign_in::create_token))
        .route("/api/me", get(account::get_account).delete(account::delete_account))
        .route("/api/messages", get(message::list_messages))
        .route("/api/messages/{id}", get(message::get_message).delete(message::delete_message))
        .route("/api/messages/{id}/read", put(message::mark_read))
        .route("/api/messages/{id}/raw", get(message::get_raw))
        .route("/api/messages/{id}/attachments/{index}", get(message::get_attachment))
}

/// The segments of a path.
fn segments<T>(path: Result<Path<T>, PathRejection>) -> Result<T, ApiError> {
    path.map(|Path(segments)| segments)
        .map_err(|_no_utf8| ApiError::InvalidRequest("The path must be UTF-8.".into()))
}

/// An id in a path; what is none is the id of nothing.
fn id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_no_id| ApiError::NotFound)
}
