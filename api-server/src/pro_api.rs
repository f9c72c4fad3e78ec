//! `/pro/api`: the resources of a tenant, with a Pro token or a session of one.

mod account;
mod document;
mod domain;
mod message;
mod session;
mod token;
mod usage;
mod webhook;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/pro/api`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(session::routes())
        .merge(account::routes())
        .merge(message::routes())
        .merge(document::routes())
        .merge(domain::routes())
        .merge(webhook::routes())
        .merge(token::routes())
        .merge(usage::routes())
}
