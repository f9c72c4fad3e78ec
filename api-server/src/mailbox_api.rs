//! `/api`: mailboxes and their messages, by address and password.

mod account;
mod domain;
mod message;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/api`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new().merge(domain::routes()).merge(account::routes()).merge(message::routes())
}
