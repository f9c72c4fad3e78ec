//! `POST /api/accounts`, `POST /api/token`, `GET` and `DELETE /api/me`.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::json;
use tempmail_model::address::MailboxAddress;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{Actor, Mailbox};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{MailboxCaller, ProToken};
use crate::http::client::{Client, PublicCaller};
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::mailbox::creation::{self, Creator};
use crate::resources::mailbox::remove;
use crate::state::AppState;

/// The routes of `/api/accounts`, `/api/token` and `/api/me`.
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
        .post(
            "/api/token",
            Operation::new("signIn", Credential::None, "Sign in to a mailbox")
                .body(json!({
                    "type": "object",
                    "required": ["address", "password"],
                    "properties": {
                        "address": {"type": "string", "examples": ["hello@inbox.localhost"]},
                        "password": {"type": "string", "examples": ["correct horse"]},
                    },
                }))
                .json::<SignedIn>(200, "A new JWT, for 7 days.")
                .fails(&[code::INVALID_CREDENTIALS, code::ACCOUNT_DISABLED]),
            create_token,
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

/// The answer to creating a mailbox and to signing in.
#[derive(Debug, Serialize, ToSchema)]
struct SignedIn {
    id: Uuid,
    address: String,
    token: String,
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

/// Signs in to a mailbox.
async fn create_token(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    body: JsonObject,
) -> Result<Json<SignedIn>, ApiError> {
    let (mailbox, token) = sign_in(&state, client, body).await?;
    Ok(Json(SignedIn { id: mailbox.id, address: mailbox.address, token }))
}

/// Signs in to the mailbox that `body` names, and returns it with a new JWT. An address without a mailbox fails like a
/// wrong password, after the same time. The attempt is given back wherever the password is not compared: a store that is
/// away makes nobody's password wrong.
///
/// # Errors
/// [`ApiError::InvalidCredentials`], [`ApiError::AccountDisabled`]; the body is malformed; there were too many attempts;
/// the store failed.
async fn sign_in(
    state: &AppState,
    client: Client,
    mut body: JsonObject,
) -> Result<(Mailbox, String), ApiError> {
    let address = body.text("address")?;
    let password = body.text("password")?;
    let address = MailboxAddress::parse(&address).ok();
    let counted_as = address.as_ref().map_or("", MailboxAddress::as_str);
    let attempt = state.limits.begin_sign_in(counted_as, client).await?;
    let found = match &address {
        Some(address) => state.store.find_mailbox_to_sign_in(address.local_part(), address.domain()).await?,
        None => None,
    };
    let (mailbox, hash) = found.unzip();
    let matches = state.passwords.verify(client.turn_key(None), password, hash, attempt).await?;
    let Some(mailbox) = mailbox.filter(|_| matches) else { return Err(ApiError::InvalidCredentials) };
    if mailbox.suspended {
        return Err(ApiError::AccountDisabled);
    }
    let now = state.clock.now();
    state.auth.last_used.record_mailbox(&mailbox, now);
    let token = state.auth.mailbox_tokens.issue(mailbox.id, mailbox.password_epoch, now);
    Ok((mailbox, token))
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
