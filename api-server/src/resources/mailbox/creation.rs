//! Creating a mailbox: a free one, or one of a tenant.

use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_model::address::{MailboxAddress, RecipientAddress};
use tempmail_model::id::new_id;
use tempmail_store::{
    Actor, AddressHolder, LimitCheck, MailboxCreation, MailboxRecreation, NewMailbox, ServingDomain,
};
use uuid::Uuid;

use super::{check_password_length, password_schema};
use crate::http::client::{Client, Party};
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
    let address = MailboxAddress::parse(&address).map_err(|_| malformed(&address))?;
    check_password_length(state, &password)?;
    let tenant = match creator {
        Creator::Tenant { tenant, .. } => Some(tenant),
        Creator::Anyone(_) => None,
    };
    let domain = usable_domain(state, &address, tenant).await?;
    let id = new_id(now);
    // Limits come before hashing, which costs far more; the statement that creates the mailbox decides.
    let (key, store) = match creator {
        Creator::Tenant { tenant, actor } => {
            check_mailbox_limit(state, tenant, now).await?;
            state.limits.admit_change(tenant).await?;
            (Party::Id(tenant).into(), state.store.acting(actor))
        }
        Creator::Anyone(client) => {
            check_free_limits(state, client).await?;
            let holder = state.store.find_address_holder(domain.id, address.local_part(), now).await?;
            if let Some(holder) = holder {
                let recreation = Recreation { client, address: &address, password, holder };
                recreate(state, id, recreation, now).await?;
                return Ok(CreatedMailbox { id, address: address.as_str().to_owned() });
            }
            (client.turn_key(None), state.store.clone())
        }
    };
    let password_hash = state.passwords.hash(key, password).await?;
    let new = NewMailbox {
        id,
        domain: domain.id,
        local_part: address.local_part(),
        tenant,
        free_quota: free_quota(state),
        free_limit: free_limit(state),
        password_hash: &password_hash,
    };
    created(store.create_mailbox(new, now).await?)?;
    Ok(CreatedMailbox { id, address: address.as_str().to_owned() })
}

/// An attempt to create a free mailbox whose address is not free.
struct Recreation<'a> {
    client: Client,
    address: &'a MailboxAddress,
    password: String,
    holder: AddressHolder,
}

/// Creates a free mailbox again whose address is held for it, if the password is that of the former one. Whatever else has
/// the address is answered in the same way, after the same time; and the attempt counts as a sign-in, since it is as good a guess at the
/// password.
///
/// # Errors
/// [`ApiError::AddressTaken`]; [`ApiError::RateLimitExceeded`] where too many sign-ins failed; as [`create`].
async fn recreate(
    state: &AppState,
    id: Uuid,
    Recreation { client, address, password, holder }: Recreation<'_>,
    now: Timestamp,
) -> Result<(), ApiError> {
    let attempt = state.limits.begin_sign_in(address.as_str(), client).await?;
    let AddressHolder { mailbox: former, password_hash } = holder;
    if !state.passwords.verify(client.turn_key(None), password, password_hash, attempt).await? {
        return Err(ApiError::AddressTaken);
    }
    let new = MailboxRecreation { id, former, quota: free_quota(state), free_limit: free_limit(state) };
    created(state.store.recreate_mailbox(new, now).await?)
}

fn created(creation: MailboxCreation) -> Result<(), ApiError> {
    match creation {
        MailboxCreation::Created => Ok(()),
        MailboxCreation::AddressTaken => Err(ApiError::AddressTaken),
        MailboxCreation::LimitReached => Err(ApiError::AccountLimitReached),
        MailboxCreation::FreeLimitReached => Err(ApiError::FreeMailboxLimitReached),
        MailboxCreation::NoSuchDomain => Err(DOMAIN_NOT_SERVED),
        MailboxCreation::TenantDisabled => Err(ApiError::AccountDisabled),
    }
}

/// Whether a client may create one more free mailbox, and there may be one more.
async fn check_free_limits(state: &AppState, client: Client) -> Result<(), ApiError> {
    if let Some(decision) = state.limits.count_free_mailbox(client).await {
        enforce("free_mailboxes", decision)?;
    }
    if state.store.count_free_mailboxes().await? >= free_limit(state) {
        return Err(ApiError::FreeMailboxLimitReached);
    }
    Ok(())
}

/// Bytes that a free mailbox may hold.
fn free_quota(state: &AppState) -> i64 {
    i64::try_from(state.config.limits.mailbox_bytes).unwrap_or(i64::MAX)
}

/// How many free mailboxes there may be.
fn free_limit(state: &AppState) -> i64 {
    i64::from(state.config.limits.free_mailboxes)
}

/// What to say of an address that no mailbox can have.
fn malformed(address: &str) -> ApiError {
    ApiError::InvalidAddress(match RecipientAddress::parse(address) {
        Ok(address) if address.local_part().contains('+') => {
            "`address` must not have a tag: leave out `+` and what follows it. A mailbox name@domain receives the mail to \
             name+tag@domain, for every tag."
        }
        _ => "`address` must be local-part@domain, the local part of a-z, 0-9, `.`, `_` and `-`.",
    })
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
        None if state.reserved.reservation_of(address.local_part()).is_reserved() => {
            Err(ApiError::InvalidAddress("This name is reserved; choose another one for `address`."))
        }
        Some(owner) if Some(owner) != tenant => Err(DOMAIN_NOT_SERVED),
        _ => Ok(domain),
    }
}
