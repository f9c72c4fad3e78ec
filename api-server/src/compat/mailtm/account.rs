//! `/accounts`, `/token` and `/me`.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{Actor, Mailbox};

use super::representation::Representation;
use super::{Error, Mailtm, SignedIn};
use crate::auth::{DropInCaller, presented};
use crate::compat::request::{Anyone, Body, Segments};
use crate::http::error::ApiError;
use crate::resources::mailbox::creation::{self, Creator};
use crate::resources::mailbox::remove;
use crate::resources::mailbox::sign_in::sign_in;
use crate::state::AppState;

/// What tokens of a tenant begin with; a mailbox' JWT does not.
const TOKEN_PREFIX: &str = "tm_";

/// Who creates a mailbox: a tenant by a token of this surface, else anybody. Clients also send the JWT of the mailbox that
/// they are signed in to, which says nothing here.
pub(super) struct CreationCaller(Creator);

impl FromRequestParts<AppState> for CreationCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        if presented(&parts.headers)?.is_some_and(|token| token.starts_with(TOKEN_PREFIX)) {
            let caller = DropInCaller::<Mailtm>::from_request_parts(parts, state).await?;
            return Ok(Self(Creator::Tenant { tenant: caller.tenant, actor: caller.actor() }));
        }
        let anyone = Anyone::<Mailtm>::from_request_parts(parts, state).await?;
        Ok(Self(Creator::Anyone(anyone.client)))
    }
}

/// Creates a mailbox: a free one at a system domain, or one of the tenant.
pub(super) async fn create(
    State(state): State<AppState>,
    CreationCaller(creator): CreationCaller,
    form: Representation,
    Body(body, _): Body<Mailtm>,
) -> Result<Response, Error> {
    let created = creation::create(&state, creator, body, state.clock.now()).await?;
    let mailbox = state.store.find_mailbox(created.id).await?.ok_or(ApiError::NotFound)?;
    Ok((StatusCode::CREATED, form.object("Account", element(&mailbox, 0))).into_response())
}

/// Signs in to a mailbox.
pub(super) async fn create_token(
    State(state): State<AppState>,
    anyone: Anyone<Mailtm>,
    Body(body, _): Body<Mailtm>,
) -> Result<Json<Value>, Error> {
    let (mailbox, token) = sign_in(&state, anyone.client, body).await?;
    Ok(Json(json!({"id": mailbox.id, "@id": format!("/accounts/{}", mailbox.id), "token": token})))
}

/// The mailbox of the JWT.
pub(super) async fn get_me(
    State(state): State<AppState>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
) -> Result<Response, Error> {
    let used = state.store.mailbox_used(mailbox.id, state.clock.now()).await?;
    Ok(form.object("Account", element(&mailbox, used)))
}

/// The same by its id; every other id is unknown.
pub(super) async fn get_account(
    State(state): State<AppState>,
    SignedIn(mailbox): SignedIn,
    form: Representation,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<Response, Error> {
    if mailbox.id.to_string() != id {
        return Err(ApiError::NotFound.into());
    }
    get_me(State(state), SignedIn(mailbox), form).await
}

/// Deletes the mailbox with its mail.
pub(super) async fn delete(
    State(state): State<AppState>,
    SignedIn(mailbox): SignedIn,
    Segments(id, _): Segments<Mailtm, String>,
) -> Result<StatusCode, Error> {
    if mailbox.id.to_string() != id {
        return Err(ApiError::NotFound.into());
    }
    if mailbox.managed_by_kubernetes {
        return Err(ApiError::ManagedByKubernetes.into());
    }
    if remove(&state, Actor::Mailbox(mailbox.id), mailbox.id, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it, and its tokens with it.
        Err(ApiError::InvalidToken.into())
    }
}

fn element(mailbox: &Mailbox, used: i64) -> Value {
    let created_at = timestamp(mailbox.created_at);
    json!({
        "@id": format!("/accounts/{}", mailbox.id),
        "@type": "Account",
        "id": mailbox.id,
        "address": mailbox.address,
        "quota": mailbox.quota,
        "used": used,
        "isDisabled": false,
        "isDeleted": false,
        "createdAt": created_at,
        "updatedAt": created_at,
    })
}
