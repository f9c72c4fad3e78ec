//! Custom domains as `/pro/api` and `/v1` manage them: what is asked for, and what is answered.

mod record;

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tempmail_model::id::new_id;
use tempmail_store::{ChangeError, CheckRequest, DomainCreation, ManagedBy, NewCustomDomain, StoreError};
use tempmail_verification::{CheckOutcome, NameError, custom_domain_name};
use uuid::Uuid;

use crate::error::{ApiError, V1Error};
use crate::json_body::{BodyError, JsonObject};
use crate::state::AppState;

pub(crate) use record::{CheckedDomain, DomainList, DomainRecord};

/// Time between two checks of one domain that its owner may ask for.
const CHECK_PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// Why a thing was not done to a custom domain. Each surface has its own words for it.
#[derive(Debug)]
pub(crate) enum DomainError {
    Body(BodyError),
    Name(NameError),
    /// Equal to, above or below a system domain.
    SystemDomain,
    AlreadyExists,
    LimitReached,
    AccountDisabled,
    Refused(ChangeError),
    TooSoon(Duration),
    Store(StoreError),
}

impl From<BodyError> for DomainError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<NameError> for DomainError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<ChangeError> for DomainError {
    fn from(refused: ChangeError) -> Self {
        Self::Refused(refused)
    }
}

impl From<StoreError> for DomainError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<DomainError> for ApiError {
    fn from(error: DomainError) -> Self {
        match error {
            DomainError::Body(error) => error.into(),
            DomainError::Name(NameError::NotAHostName) => Self::InvalidDomain(
                "`domain` must be a host name of at least two labels, such as example.com.",
            ),
            DomainError::Name(NameError::PublicSuffix) => {
                Self::InvalidDomain("`domain` is a public suffix; use a domain below it that is yours.")
            }
            DomainError::SystemDomain => Self::InvalidDomain(
                "`domain` is equal to, above or below a domain of the service itself; use another one.",
            ),
            DomainError::AlreadyExists => Self::DomainAlreadyExists,
            DomainError::LimitReached => Self::DomainLimitReached,
            DomainError::AccountDisabled => Self::AccountDisabled,
            DomainError::Refused(refused) => refused.into(),
            DomainError::TooSoon(retry_after) => Self::RateLimitExceeded { retry_after },
            DomainError::Store(error) => error.into(),
        }
    }
}

impl From<DomainError> for V1Error {
    fn from(error: DomainError) -> Self {
        match error {
            DomainError::Body(error) => error.into(),
            DomainError::Name(_) | DomainError::SystemDomain => Self::InvalidDomain,
            DomainError::AlreadyExists => Self::DomainAlreadyExists,
            DomainError::LimitReached => Self::DomainLimitReached,
            DomainError::AccountDisabled => Self::AccountDisabled,
            DomainError::Refused(refused) => refused.into(),
            DomainError::TooSoon(retry_after) => Self::RateLimitExceeded { retry_after },
            DomainError::Store(error) => error.into(),
        }
    }
}

/// The body that adds a domain.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["domain"],
        "properties": {"domain": {
            "type": "string",
            "description": "A host name of at least two labels; letters outside ASCII are taken as A-labels.",
            "examples": ["example.com"],
        }},
    })
}

/// A page of a tenant's domains.
pub(crate) async fn list(state: &AppState, tenant: Uuid, page: i64) -> Result<DomainList, StoreError> {
    let domains = state.store.list_custom_domains(tenant, page).await?;
    Ok(DomainList::new(domains, &state.verifier.settings().mx_host))
}

/// Adds the domain that `body` names.
pub(crate) async fn create(
    state: &AppState,
    tenant: Uuid,
    mut body: JsonObject,
) -> Result<DomainRecord, DomainError> {
    let name = custom_domain_name(&body.text("domain")?)?;
    let rules = state.verifier.settings();
    let now = state.clock.now();
    let new = NewCustomDomain {
        id: new_id(now),
        tenant,
        name: &name,
        token: &state.verify_tokens.of(tenant, &name),
        managed_by: ManagedBy::Api,
        installation_names: &rules.installation_names,
        deadline: now + rules.pending,
        next_check_at: now + rules.interval.min(rules.pending),
    };
    match state.store.create_custom_domain(new, now).await? {
        DomainCreation::Created => find(state, tenant, new.id).await,
        DomainCreation::AlreadyExists => Err(DomainError::AlreadyExists),
        DomainCreation::LimitReached => Err(DomainError::LimitReached),
        DomainCreation::OverlapsSystemDomain => Err(DomainError::SystemDomain),
        DomainCreation::TenantDisabled => Err(DomainError::AccountDisabled),
    }
}

/// Checks the records of a domain now, whatever its state.
pub(crate) async fn check(state: &AppState, tenant: Uuid, id: Uuid) -> Result<CheckedDomain, DomainError> {
    match state.store.request_domain_check(tenant, id, CHECK_PAUSE, state.clock.now()).await? {
        CheckRequest::Accepted => {}
        CheckRequest::TooSoon { retry_after } => return Err(DomainError::TooSoon(retry_after)),
        CheckRequest::NotFound => return Err(ChangeError::NotFound.into()),
    }
    let checked = state.verifier.check(id).await?.ok_or(ChangeError::NotFound)?;
    if checked.outcome == CheckOutcome::OverlapsSystemDomain {
        return Err(DomainError::SystemDomain);
    }
    Ok(CheckedDomain::new(find(state, tenant, id).await?, checked))
}

/// Removes a domain with its mailboxes and mail.
pub(crate) async fn remove(state: &AppState, tenant: Uuid, id: Uuid) -> Result<(), DomainError> {
    Ok(state.store.remove_custom_domain(tenant, id, state.clock.now()).await??)
}

async fn find(state: &AppState, tenant: Uuid, id: Uuid) -> Result<DomainRecord, DomainError> {
    let domain = state.store.find_custom_domain(tenant, id).await?.ok_or(ChangeError::NotFound)?;
    Ok(DomainRecord::new(domain, &state.verifier.settings().mx_host))
}
