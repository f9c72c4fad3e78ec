//! Custom domains of a tenant: list, add, check, delete.

mod record;

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempmail_admission::Holder;
use tempmail_model::id::new_id;
use tempmail_store::{CheckRequest, DomainCreation, ManagedBy, NewCustomDomain};
use tempmail_verification::{CheckOutcome, NameError, custom_domain_name};
use uuid::Uuid;

use crate::auth::TenantCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::parameter::{PageNumber, PathId};
use crate::openapi::{Operation, Routes, path_id};
use crate::state::AppState;

pub(crate) use record::CheckedDomain;
use record::{DomainList, DomainRecord};

/// Time between two checks of one domain over HTTP.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// When to try again where the tenant has as many checks in flight as it may.
const RETRY_CHECK: Duration = Duration::from_secs(5);
/// Checks that a tenant requests at once, of as many domains.
const CHECKS_OF_TENANT: usize = 4;

/// The paths of a surface's domain routes, and what is its own in their descriptions.
pub(crate) struct DomainRoutes {
    /// The path of the list.
    pub(crate) collection: &'static str,
    /// The path of one domain, with `{id}`.
    pub(crate) item: &'static str,
    pub(crate) list: Operation,
    pub(crate) create: Operation,
    pub(crate) delete: Operation,
}

/// The domain routes of a surface, whose caller is `C`.
pub(crate) fn routes<C: TenantCaller + FromRequestParts<AppState>>(
    surface: DomainRoutes,
) -> Routes<AppState> {
    let list = surface.list.page_of_owned().json::<DomainList>(200, "A page, newest first.");
    let create = surface
        .create
        .description("The domain is pending until its DNS records are found, for 72 h at most.")
        .body(schema())
        .json::<DomainRecord>(201, "The domain, with the DNS records to create.")
        .fails(&[code::INVALID_DOMAIN, code::DOMAIN_LIMIT_REACHED, code::DOMAIN_ALREADY_EXISTS]);
    let delete = surface
        .delete
        .parameter(path_id("Id of the domain."))
        .empty(204, "The domain is deleted, and mail to it is rejected.")
        .fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::MANAGED_BY_KUBERNETES]);
    Routes::new()
        .get(surface.collection, list, list_domains::<C>)
        .post(surface.collection, create, create_domain::<C>)
        .delete(surface.item, delete, delete_domain::<C>)
}

/// The body that adds a domain.
fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["domain"],
        "properties": {"domain": {
            "type": "string",
            "description": "A host name of at least two labels; non-ASCII letters are converted to A-labels.",
            "examples": ["example.com"],
        }},
    })
}

async fn list_domains<C: TenantCaller + FromRequestParts<AppState>>(
    State(state): State<AppState>,
    caller: C,
    PageNumber(page): PageNumber,
) -> Result<Json<DomainList>, C::Error> {
    let listed = state.store.list_custom_domains(caller.tenant(), page).await;
    Ok(Json(DomainList::new(listed.map_err(ApiError::from)?, &state.verifier.settings().mx_host)))
}

async fn create_domain<C: TenantCaller + FromRequestParts<AppState>>(
    State(state): State<AppState>,
    caller: C,
    body: JsonObject,
) -> Result<(StatusCode, Json<DomainRecord>), C::Error> {
    let record = create(&state, &caller, body).await?;
    Ok((StatusCode::CREATED, Json(record)))
}

async fn delete_domain<C: TenantCaller + FromRequestParts<AppState>>(
    State(state): State<AppState>,
    caller: C,
    PathId(id): PathId,
) -> Result<StatusCode, C::Error> {
    let store = state.store.acting(caller.actor());
    let removed = store.remove_custom_domain(caller.tenant(), id, state.clock.now()).await;
    removed.map_err(ApiError::from)?.map_err(ApiError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Adds the domain that `body` names.
async fn create<C: TenantCaller>(
    state: &AppState,
    caller: &C,
    mut body: JsonObject,
) -> Result<DomainRecord, ApiError> {
    let tenant = caller.tenant();
    let name = custom_domain_name(&body.text("domain")?)?;
    let rules = state.verifier.settings();
    let now = state.clock.now();
    let new = NewCustomDomain {
        id: new_id(now),
        tenant,
        name: &name,
        token: &state.verify_tokens.token_for(tenant, &name),
        managed_by: ManagedBy::Api,
        installation_names: &rules.installation_names,
        deadline: now + rules.pending,
        next_check_at: now + rules.interval.min(rules.pending),
    };
    state.limits.admit_change(tenant).await?;
    match state.store.acting(caller.actor()).create_custom_domain(new, now).await? {
        DomainCreation::Created => find(state, tenant, new.id).await,
        DomainCreation::AlreadyExists => Err(ApiError::DomainAlreadyExists),
        DomainCreation::LimitReached => Err(ApiError::DomainLimitReached),
        DomainCreation::OverlapsSystemDomain => Err(SYSTEM_DOMAIN),
        DomainCreation::TenantDisabled => Err(ApiError::AccountDisabled),
    }
}

/// Checks the DNS records of a domain now, whatever its status.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`] within 10 s of another check, or while the tenant has several in flight;
/// [`ApiError::NotFound`], [`ApiError::InvalidDomain`]; the store failed.
pub(crate) async fn check<C: TenantCaller>(
    state: &AppState,
    caller: &C,
    id: Uuid,
) -> Result<CheckedDomain, ApiError> {
    let tenant = caller.tenant();
    let too_many = ApiError::RateLimitExceeded {
        retry_after: RETRY_CHECK,
        limit: "domain_checks_of_tenant",
        decision: None,
    };
    let of_tenant = Holder { key: tenant, cap: CHECKS_OF_TENANT };
    let _share = state.domain_checks.try_acquire([of_tenant], 1).map_err(|_exceeded| too_many)?;
    let (token, now) = (caller.token(), state.clock.now());
    match state.store.request_domain_check(tenant, id, token, CHECK_INTERVAL, now).await? {
        CheckRequest::Accepted => {}
        CheckRequest::TooSoon { retry_after } => {
            return Err(ApiError::RateLimitExceeded { retry_after, limit: "domain_check", decision: None });
        }
        CheckRequest::NotFound => return Err(ApiError::NotFound),
    }
    let checked = state.verifier.check(id).await?.ok_or(ApiError::NotFound)?;
    if checked.outcome == CheckOutcome::OverlapsSystemDomain {
        return Err(SYSTEM_DOMAIN);
    }
    Ok(CheckedDomain::new(find(state, tenant, id).await?, checked))
}

async fn find(state: &AppState, tenant: Uuid, id: Uuid) -> Result<DomainRecord, ApiError> {
    let domain = state.store.find_custom_domain(tenant, id).await?.ok_or(ApiError::NotFound)?;
    Ok(DomainRecord::new(domain, &state.verifier.settings().mx_host))
}

const SYSTEM_DOMAIN: ApiError = ApiError::InvalidDomain(
    "`domain` is equal to, above or below a domain of the service itself; use another one.",
);

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        Self::InvalidDomain(match error {
            NameError::NotAHostName => {
                "`domain` must be a host name of at least two labels, such as example.com."
            }
            NameError::PublicSuffix => "`domain` is a public suffix; use your own domain below it.",
        })
    }
}
