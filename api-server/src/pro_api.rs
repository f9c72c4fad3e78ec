//! `/pro/api`: what a tenant manages, with a Pro token or a session that stands for one.

mod account;
mod domain;
mod session;
mod token;
mod webhook;

use crate::openapi::Routes;

/// The routes of `/pro/api`.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .merge(session::routes())
        .merge(account::routes())
        .merge(domain::routes())
        .merge(webhook::routes())
        .merge(token::routes())
}
