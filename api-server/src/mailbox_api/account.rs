//! `POST /api/accounts`, `GET` and `DELETE /api/me`.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::address::{MailboxAddress, Reservation};
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{Actor, LimitCheck, MailboxCreation, NewMailbox, ServingDomain};
use utoipa::ToSchema;
use uuid::Uuid;

use super::signed_in::SignedIn;
use crate::auth::{HashParty, MailboxCaller, ProToken};
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::public_caller::PublicCaller;
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

/// Who creates a mailbox. Extracting it counts the request by the token, or else by the client.
#[derive(Clone, Copy)]
enum Creator {
    /// The tenant of a Pro token.
    Pro(ProToken),
    /// Anyone.
    Free(PublicCaller),
}

impl FromRequestParts<AppState> for Creator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let pro = Option::<ProToken>::from_request_parts(parts, state).await;
        match pro.map_err(ApiError::into_response)? {
            Some(token) => Ok(Self::Pro(token)),
            None => Ok(Self::Free(PublicCaller::from_request_parts(parts, state).await?)),
        }
    }
}

/// Creates a mailbox: a free one, or with a Pro token one of its tenant.
async fn create_account(
    State(state): State<AppState>,
    creator: Creator,
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
    let free_limit = i64::from(state.config.limits.free_mailboxes);
    let now = state.clock.now();
    let (pro, party) = match creator {
        Creator::Pro(token) => (Some(token), HashParty::Tenant(token.tenant)),
        Creator::Free(PublicCaller { client }) => (None, HashParty::of_client(client)),
    };
    let tenant = pro.map(|token| token.tenant);
    let domain = usable_domain(&state, &address, tenant).await?;
    // Limits come before hashing, which costs far more; the statement that creates the mailbox decides.
    match creator {
        Creator::Pro(token) => check_mailbox_limit(&state, token.tenant, now).await?,
        Creator::Free(PublicCaller { client }) => {
            if let Some(decision) = state.limits.count_free_mailbox(client).await {
                enforce("free_mailboxes", decision)?;
            }
            if state.store.count_free_mailboxes().await? >= free_limit {
                return Err(ApiError::FreeMailboxLimitReached);
            }
        }
    }
    let password_hash = state.passwords.hash(party, password).await?;
    let new = NewMailbox {
        id: new_id(now),
        domain: domain.id,
        local_part: address.local_part(),
        tenant,
        free_quota: i64::try_from(state.config.limits.mailbox_bytes).unwrap_or(i64::MAX),
        free_limit,
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
        MailboxCreation::FreeLimitReached => return Err(ApiError::FreeMailboxLimitReached),
        MailboxCreation::NoSuchDomain => return Err(DOMAIN_NOT_SERVED),
        MailboxCreation::TenantDisabled => return Err(ApiError::AccountDisabled),
    }
    let token = state.auth.mailbox_tokens.issue(new.id, 0, now);
    Ok((StatusCode::CREATED, Json(SignedIn { id: new.id, address: address.as_str().to_owned(), token })))
}

/// Whether a tenant may have one more mailbox.
async fn check_mailbox_limit(state: &AppState, tenant: Uuid, now: Timestamp) -> Result<(), ApiError> {
    match state.store.check_mailbox_limit(tenant, now).await? {
        LimitCheck::Passed => Ok(()),
        LimitCheck::Reached => Err(ApiError::AccountLimitReached),
        LimitCheck::TenantDisabled => Err(ApiError::AccountDisabled),
    }
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
