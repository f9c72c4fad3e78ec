//! `/pro/api`: the resources of a tenant, with a Pro token or a session of one.

mod account;
mod message;
mod session;
mod tenant;
mod webhook;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/pro/api`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(session::routes())
        .merge(account::routes())
        .merge(message::routes())
        .merge(tenant::routes())
        .merge(webhook::routes())
}
