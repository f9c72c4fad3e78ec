//! `POST /api/accounts`, `GET` and `DELETE /api/me`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::address::{MailboxAddress, Reservation};
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{Actor, MailboxCreation, NewMailbox, ServingDomain};
use utoipa::ToSchema;
use uuid::Uuid;

use super::signed_in::SignedIn;
use crate::auth::{MailboxCaller, ProToken};
use crate::http::client::Client;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::rate_limit::enforce;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::mailbox::{check_password_length, password_schema, remove};
use crate::state::AppState;

const DOMAIN_NOT_SERVED: ApiError =
    ApiError::InvalidAddress("The domain of `address` is not one that you can use; see GET /api/domains.");

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
                .body(new_account_schema())
                .json::<SignedIn>(201, "The mailbox, and a JWT for it.")
                .fails(&[
                    code::INVALID_ADDRESS,
                    code::PASSWORD_TOO_SHORT,
                    code::PASSWORD_TOO_LONG,
                    code::ACCOUNT_LIMIT_REACHED,
                    code::ADDRESS_TAKEN,
                ]),
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

/// The body that creates a mailbox.
fn new_account_schema() -> Value {
    json!({
        "type": "object",
        "required": ["address", "password"],
        "properties": {
            "address": {
                "type": "string",
                "pattern": "^.+@.+$",
                "description": "The local part has 1 to 64 characters of `a-z 0-9 . _ -`, ignoring case; the first \
                                and the last are alphanumeric, without `..`. The caller may use the domain.",
                "examples": ["hello@inbox.localhost"],
            },
            "password": password_schema(),
        },
    })
}

/// Creates a mailbox: a free one, or with a Pro token one of its tenant.
async fn create_account(
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
    check_password_length(&state, &password)?;
    let tenant = pro.map(|caller| caller.tenant);
    let domain = usable_domain(&state, &address, tenant).await?;
    if tenant.is_none()
        && let Some(decision) = state.limits.count_free_mailbox(client).await
    {
        enforce(decision)?;
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
    let store = match pro {
        Some(caller) => state.store.acting(Actor::Token(caller.token)),
        None => state.store.clone(),
    };
    match store.create_mailbox(new, now).await? {
        MailboxCreation::Created => {}
        MailboxCreation::AddressTaken => return Err(ApiError::AddressTaken),
        MailboxCreation::LimitReached => return Err(ApiError::AccountLimitReached),
        MailboxCreation::NoSuchDomain => return Err(DOMAIN_NOT_SERVED),
        MailboxCreation::TenantDisabled => return Err(ApiError::AccountDisabled),
    }
    let token = state.auth.mailbox_tokens.issue(new.id, 0, now);
    Ok((StatusCode::CREATED, Json(SignedIn { id: new.id, address: address.as_str().to_owned(), token })))
}

/// The caller's account.
async fn get_account(
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
async fn delete_account(
    State(state): State<AppState>,
    MailboxCaller { mailbox }: MailboxCaller,
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

/// The domain of an address, if the caller may create mailboxes there; on a system domain the local part
/// must not be reserved.
async fn usable_domain(
    state: &AppState,
    address: &MailboxAddress,
    tenant: Option<Uuid>,
) -> Result<ServingDomain, ApiError> {
    let domain = state.store.find_serving_domain(address.domain()).await?.ok_or(DOMAIN_NOT_SERVED)?;
    match domain.tenant {
        None if state.reserved.reservation_of(address.local_part()) != Reservation::None => {
            Err(ApiError::InvalidAddress("This name is reserved; choose another one for `address`."))
        }
        Some(owner) if Some(owner) != tenant => Err(DOMAIN_NOT_SERVED),
        _ => Ok(domain),
    }
}
