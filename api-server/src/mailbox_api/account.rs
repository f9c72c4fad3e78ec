//! `POST /api/accounts`, `GET` and `DELETE /api/me`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::address::{MailboxAddress, Reservation};
use tempmail_model::id::new_id;
use tempmail_store::{MailboxCreation, NewMailbox, ServingDomain};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::account::{check_length, password_schema, remove};
use crate::auth::{MailboxCaller, ProToken};
use crate::client::Client;
use crate::error::ApiError;
use crate::json_body::JsonObject;
use crate::state::AppState;
use tempmail_model::timestamp::timestamp;

/// The answer to creating a mailbox and to signing in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SignedIn {
    pub(super) id: Uuid,
    pub(super) address: String,
    pub(super) token: String,
}

/// A mailbox account.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Account {
    id: Uuid,
    address: String,
    role: Role,
    #[schema(minimum = 0)]
    quota: i64,
    #[schema(minimum = 0)]
    used: i64,
    created_at: String,
}

/// Whose a mailbox is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// Whoever knows its password.
    Free,
    /// A tenant's.
    Pro,
}

/// What creating a mailbox takes.
pub(super) fn new_account_schema() -> Value {
    json!({
        "type": "object",
        "required": ["address", "password"],
        "properties": {
            "address": {
                "type": "string",
                "pattern": "^.+@.+$",
                "description": "The local part has 1 to 64 of `a-z 0-9 . _ -` in any case, the first and the last \
                                alphanumeric, no `..`; the domain is one that the caller may use.",
                "examples": ["hello@inbox.localhost"],
            },
            "password": password_schema(),
        },
    })
}

/// What signing in takes.
pub(super) fn credentials_schema() -> Value {
    json!({
        "type": "object",
        "required": ["address", "password"],
        "properties": {
            "address": {"type": "string", "examples": ["hello@inbox.localhost"]},
            "password": {"type": "string", "examples": ["correct horse"]},
        },
    })
}

/// Makes a mailbox: a free one, or with a Pro token its tenant's.
pub(super) async fn create_account(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    pro: Option<ProToken>,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<SignedIn>), ApiError> {
    let address = body.text("address")?;
    let password = body.text("password")?;
    let address = MailboxAddress::parse(&address).map_err(|_| {
        ApiError::InvalidAddress(
            "`address` must be local-part@domain, the local part of a-z, 0-9, `.`, `_` and `-`.",
        )
    })?;
    check_length(&state, &password)?;
    let tenant = pro.map(|caller| caller.tenant);
    let domain = usable_domain(&state, &address, tenant).await?;
    if tenant.is_none()
        && let Some(decision) = state.limits.of_free_mailbox(client).await
        && !decision.allowed
    {
        return Err(ApiError::RateLimitExceeded { retry_after: decision.retry_after });
    }
    let password_hash = state.passwords.hash(password).await?;
    let now = state.clock.now();
    let new = NewMailbox {
        id: new_id(now),
        domain: domain.id,
        local_part: address.local_part(),
        tenant,
        free_quota: i64::try_from(state.config.limits.mailbox_bytes).unwrap_or(i64::MAX),
        password_hash: &password_hash,
    };
    match state.store.create_mailbox(new, now).await? {
        MailboxCreation::Created => {}
        MailboxCreation::AddressTaken => return Err(ApiError::AddressTaken),
        MailboxCreation::LimitReached => return Err(ApiError::AccountLimitReached),
        MailboxCreation::NoSuchDomain => return Err(NOT_SERVED),
        MailboxCreation::TenantDisabled => return Err(ApiError::AccountDisabled),
    }
    let token = state.mailbox_tokens.make(new.id, 0, now);
    Ok((StatusCode::CREATED, Json(SignedIn { id: new.id, address: address.as_str().to_owned(), token })))
}

/// The caller's account.
pub(super) async fn get_account(
    State(state): State<AppState>,
    MailboxCaller { mailbox }: MailboxCaller,
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
pub(super) async fn delete_account(
    State(state): State<AppState>,
    MailboxCaller { mailbox }: MailboxCaller,
) -> Result<StatusCode, ApiError> {
    if mailbox.managed_by_kubernetes {
        return Err(ApiError::ManagedByKubernetes);
    }
    if remove(&state, mailbox.id, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Deleted by another request: its tokens ended with it.
        Err(ApiError::InvalidToken)
    }
}

const NOT_SERVED: ApiError =
    ApiError::InvalidAddress("The domain of `address` is not one that you can use; see GET /api/domains.");

/// The domain of an address, if it serves the caller; on a system domain the name must not be
/// reserved.
async fn usable_domain(
    state: &AppState,
    address: &MailboxAddress,
    tenant: Option<Uuid>,
) -> Result<ServingDomain, ApiError> {
    let domain = state.store.find_serving_domain(address.domain()).await?.ok_or(NOT_SERVED)?;
    match domain.tenant {
        None if state.reserved.reservation_of(address.local_part()) != Reservation::None => {
            Err(ApiError::InvalidAddress("This name is reserved; choose another one for `address`."))
        }
        Some(owner) if Some(owner) != tenant => Err(NOT_SERVED),
        _ => Ok(domain),
    }
}
