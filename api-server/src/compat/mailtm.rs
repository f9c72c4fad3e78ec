//! The API of mail.tm (`docs/compat/mailtm.md`). The credential is a mailbox' own, as on `/api`; a token of this surface
//! creates mailboxes of its tenant.

mod account;
mod domain;
mod message;
mod messages;
mod representation;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::routing::{get, post};
use tempmail_model::surface::DropInSurface;
use tempmail_store::Mailbox;

use crate::auth::MailboxCaller;
use crate::http::error::{DropIn, DropInError};
use crate::state::AppState;

/// The surface, as a type.
#[derive(Debug)]
pub(super) struct Mailtm;

impl DropIn for Mailtm {
    const SURFACE: DropInSurface = DropInSurface::MailTm;
}

type Error = DropInError<Mailtm>;

/// The mailbox whose JWT was presented, as [`MailboxCaller`].
struct SignedIn(Mailbox);

impl FromRequestParts<AppState> for SignedIn {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let caller = MailboxCaller::from_request_parts(parts, state).await?;
        Ok(Self(caller.mailbox))
    }
}

/// The routes of the surface.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/domains", get(domain::list))
        .route("/domains/{id}", get(domain::get_domain))
        .route("/accounts", post(account::create))
        .route("/accounts/{id}", get(account::get_account).delete(account::delete))
        .route("/me", get(account::get_me))
        .route("/token", post(account::create_token))
        .route("/messages", get(messages::list))
        .route(
            "/messages/{id}",
            get(messages::get_message).patch(messages::mark).delete(messages::delete_message),
        )
        .route("/messages/{id}/download", get(messages::download))
        .route("/messages/{id}/attachment/{attachment}", get(messages::download_attachment))
        .route("/sources/{id}", get(messages::get_source))
}
