//! Creating a mailbox: a free one, or one of a tenant.

use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_model::address::{MailboxAddress, Reservation};
use tempmail_model::id::new_id;
use tempmail_store::{Actor, LimitCheck, MailboxCreation, NewMailbox, ServingDomain};
use uuid::Uuid;

use super::{check_password_length, password_schema};
use crate::auth::HashParty;
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::http::error::code::{self, Code};
use crate::http::json_body::JsonObject;
use crate::http::rate_limit::enforce;
use crate::state::AppState;

const DOMAIN_NOT_SERVED: ApiError =
    ApiError::InvalidAddress("The domain of `address` is not one that you can use; see GET /api/domains.");

/// What a creation can fail with, besides what its credential and body can.
pub(crate) const ERRORS: [Code; 5] = [
    code::INVALID_ADDRESS,
    code::PASSWORD_TOO_SHORT,
    code::PASSWORD_TOO_LONG,
    code::ACCOUNT_LIMIT_REACHED,
    code::ADDRESS_TAKEN,
];

/// Who creates a mailbox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Creator {
    /// A tenant, by one of its tokens or a session of one.
    Tenant { tenant: Uuid, actor: Actor },
    /// Anyone.
    Anyone(Client),
}

/// A mailbox that was created.
#[derive(Debug)]
pub(crate) struct CreatedMailbox {
    pub(crate) id: Uuid,
    pub(crate) address: String,
}

/// The body that creates a mailbox.
pub(crate) fn schema() -> Value {
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

/// Creates the mailbox that `body` describes.
///
/// # Errors
/// [`ERRORS`]; the body is malformed; the tenant is suspended; the client makes too many; the store failed.
pub(crate) async fn create(
    state: &AppState,
    creator: Creator,
    mut body: JsonObject,
    now: Timestamp,
) -> Result<CreatedMailbox, ApiError> {
    let address = body.text("address")?;
    let password = body.text("password")?;
    let address = MailboxAddress::parse(&address).map_err(|_| {
        ApiError::InvalidAddress(
            "`address` must be local-part@domain, the local part of a-z, 0-9, `.`, `_` and `-`.",
        )
    })?;
    check_password_length(state, &password)?;
    let free_limit = i64::from(state.config.limits.free_mailboxes);
    let (tenant, party) = match creator {
        Creator::Tenant { tenant, .. } => (Some(tenant), HashParty::Tenant(tenant)),
        Creator::Anyone(client) => (None, HashParty::of_client(client)),
    };
    let domain = usable_domain(state, &address, tenant).await?;
    // Limits come before hashing, which costs far more; the statement that creates the mailbox decides.
    match creator {
        Creator::Tenant { tenant, .. } => check_mailbox_limit(state, tenant, now).await?,
        Creator::Anyone(client) => {
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
    let store = match creator {
        Creator::Tenant { actor, .. } => state.store.acting(actor),
        Creator::Anyone(_) => state.store.clone(),
    };
    match store.create_mailbox(new, now).await? {
        MailboxCreation::Created => Ok(CreatedMailbox { id: new.id, address: address.as_str().to_owned() }),
        MailboxCreation::AddressTaken => Err(ApiError::AddressTaken),
        MailboxCreation::LimitReached => Err(ApiError::AccountLimitReached),
        MailboxCreation::FreeLimitReached => Err(ApiError::FreeMailboxLimitReached),
        MailboxCreation::NoSuchDomain => Err(DOMAIN_NOT_SERVED),
        MailboxCreation::TenantDisabled => Err(ApiError::AccountDisabled),
    }
}

/// Whether a tenant may have one more mailbox.
async fn check_mailbox_limit(state: &AppState, tenant: Uuid, now: Timestamp) -> Result<(), ApiError> {
    match state.store.check_mailbox_limit(tenant, now).await? {
        LimitCheck::Passed => Ok(()),
        LimitCheck::Reached => Err(ApiError::AccountLimitReached),
        LimitCheck::TenantDisabled => Err(ApiError::AccountDisabled),
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
