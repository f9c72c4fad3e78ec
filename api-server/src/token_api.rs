//! `/v1`: the token API. Inboxes are identified by e-mail address, without creating a mailbox first.

mod address;
mod config;
mod domain;
mod email;
mod emails;
mod inbox;
mod mail_wait;
mod minting;
mod owned;
mod stream;
mod token;
mod wait;
mod wait_permits;

use crate::openapi::Routes;
use crate::state::AppState;

/// The routes of `/v1`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(config::routes())
        .merge(inbox::routes())
        .merge(owned::routes())
        .merge(mail_wait::routes())
        .merge(emails::routes())
        .merge(email::routes())
        .merge(stream::routes())
        .merge(domain::routes())
        .merge(token::routes())
}
