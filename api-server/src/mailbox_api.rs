//! `/api`: mailboxes and their messages, by address and password.

mod account;
mod document;
mod domain;
mod message;
mod sign_in;
mod signed_in;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/api`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(domain::routes())
        .merge(account::routes())
        .merge(sign_in::routes())
        .merge(message::routes())
        .merge(document::routes())
}
