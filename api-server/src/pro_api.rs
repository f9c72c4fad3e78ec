//! `/pro/api`: the resources of a tenant, with a Pro token or a session of one.

mod account;
mod domain;
mod session;
mod token;
mod webhook;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/pro/api`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(session::routes())
        .merge(account::routes())
        .merge(domain::routes())
        .merge(webhook::routes())
        .merge(token::routes())
}
