//! `POST /api/accounts`, `GET` and `DELETE /api/me`.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tempmail_model::timestamp::timestamp;
use tempmail_store::Actor;
use utoipa::ToSchema;
use uuid::Uuid;

use super::signed_in::SignedIn;
use crate::auth::{MailboxCaller, ProToken};
use crate::http::client::PublicCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::mailbox::creation::{self, Creator};
use crate::resources::mailbox::remove;
use crate::state::AppState;

/// The routes of `/api/accounts` and `/api/me`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new()
        .post(
            "/api/accounts",
            Operation::new("createAccount", Credential::MaybePro, "Create a mailbox")
                .description(
                    "Without a token a free mailbox at a system domain; with a Pro token a mailbox of the \
                     tenant, also at its verified custom domains.",
                )
                .body(creation::schema())
                .json::<SignedIn>(201, "The mailbox, and a JWT for it.")
                .fails(&creation::ERRORS),
            create_account,
        )
        .get(
            "/api/me",
            Operation::new("getAccount", Credential::Mailbox, "Show the mailbox")
                .json::<Account>(200, "The mailbox."),
            get_account,
        )
        .delete(
            "/api/me",
            Operation::new("deleteAccount", Credential::Mailbox, "Delete the mailbox with its mail")
                .empty(204, "The mailbox is deleted.")
                .fails(&[code::MANAGED_BY_KUBERNETES]),
            delete_account,
        )
}

/// A mailbox account.
#[derive(Debug, Serialize, ToSchema)]
struct Account {
    id: Uuid,
    address: String,
    role: Role,
    #[schema(minimum = 0)]
    quota: i64,
    #[schema(minimum = 0)]
    used: i64,
    created_at: String,
}

/// Who a mailbox belongs to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// To no tenant.
    Free,
    /// To a tenant.
    Pro,
}

/// Who calls. Extracting it counts the request by the token, or else by the client.
struct CreationCaller(Creator);

impl FromRequestParts<AppState> for CreationCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let pro = Option::<ProToken>::from_request_parts(parts, state).await;
        match pro.map_err(ApiError::into_response)? {
            Some(ProToken { token, tenant }) => {
                Ok(Self(Creator::Tenant { tenant, actor: Actor::Token(token) }))
            }
            None => {
                let PublicCaller { client } = PublicCaller::from_request_parts(parts, state).await?;
                Ok(Self(Creator::Anyone(client)))
            }
        }
    }
}

/// Creates a mailbox: a free one, or with a Pro token one of its tenant.
async fn create_account(
    State(state): State<AppState>,
    CreationCaller(creator): CreationCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<SignedIn>), ApiError> {
    let now = state.clock.now();
    let created = creation::create(&state, creator, body, now).await?;
    let token = state.auth.mailbox_tokens.issue(created.id, 0, now);
    Ok((StatusCode::CREATED, Json(SignedIn { id: created.id, address: created.address, token })))
}

/// The caller's account.
async fn get_account(
    State(state): State<AppState>,
    MailboxCaller { mailbox, .. }: MailboxCaller,
) -> Result<Json<Account>, ApiError> {
    let used = state.store.mailbox_used(mailbox.id, state.clock.now()).await?;
    Ok(Json(Account {
        id: mailbox.id,
        address: mailbox.address,
        role: if mailbox.tenant.is_some() { Role::Pro } else { Role::Free },
        quota: mailbox.quota,
        used,
        created_at: timestamp(mailbox.created_at),
    }))
}

/// Deletes the caller's mailbox with its mail.
async fn delete_account(
    State(state): State<AppState>,
    MailboxCaller { mailbox, .. }: MailboxCaller,
) -> Result<StatusCode, ApiError> {
    if mailbox.managed_by_kubernetes {
        return Err(ApiError::ManagedByKubernetes);
    }
    if remove(&state, Actor::Mailbox(mailbox.id), mailbox.id, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it, and its tokens with it.
        Err(ApiError::InvalidToken)
    }
}
