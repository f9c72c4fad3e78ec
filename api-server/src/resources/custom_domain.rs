//! Custom domains of a tenant: list, add, check, delete.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_admission::Holder;
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_model::verify_token::{txt_host, txt_value};
use tempmail_store::{CheckRequest, CustomDomain, DomainCreation, ManagedBy, NewCustomDomain};
use tempmail_verification::{CheckOutcome, CheckResult, NameError, custom_domain_name};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::TenantCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::parameter::{PageNumber, PathId};
use crate::openapi::{Operation, Routes, path_id};
use crate::state::AppState;

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

/// Preference of the proposed MX record; the check accepts any.
const MX_PRIORITY: u16 = 10;

/// A custom domain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainRecord {
    id: Uuid,
    /// As A-labels.
    domain: String,
    /// `pending`, `verified` or `failed`.
    verify_status: &'static str,
    verify_token: String,
    /// The DNS records to create.
    dns_records: Vec<DnsRecord>,
    /// Whether the MX record was correct when the name servers last answered.
    mx_configured: bool,
    created_at: String,
    /// When a pending domain fails.
    deadline: String,
    /// When it last became verified.
    verified_at: Option<String>,
    /// `verification_timed_out`, `records_lost` or `claimed_by_another`; null unless failed.
    failure_reason: Option<&'static str>,
    /// `api` or `kubernetes`.
    managed_by: &'static str,
}

/// A DNS record to create.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DnsRecord {
    /// `TXT` or `MX`.
    #[serde(rename = "type")]
    kind: &'static str,
    host: String,
    value: String,
    /// The preference of an MX record.
    priority: Option<u16>,
    /// Whether the record was correct when the name servers last answered.
    ok: bool,
}

/// A page of custom domains, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainList {
    domains: Vec<DomainRecord>,
}

/// A custom domain with the result of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckedDomain {
    #[serde(flatten)]
    record: DomainRecord,
    /// Whether the TXT record is correct; also false where the name servers did not answer.
    txt_record: bool,
    /// Whether the MX record is correct; also false where the name servers did not answer.
    mx_record: bool,
}

impl DomainRecord {
    /// `mx_host` is the value of the MX record.
    pub(crate) fn new(domain: CustomDomain, mx_host: &str) -> Self {
        let txt = DnsRecord {
            kind: "TXT",
            host: txt_host(&domain.name),
            value: txt_value(&domain.token),
            priority: None,
            ok: domain.txt_ok,
        };
        let mx = DnsRecord {
            kind: "MX",
            host: domain.name.clone(),
            value: mx_host.to_owned(),
            priority: Some(MX_PRIORITY),
            ok: domain.mx_ok,
        };
        Self {
            id: domain.id,
            domain: domain.name,
            verify_status: domain.status.as_str(),
            verify_token: domain.token,
            dns_records: vec![txt, mx],
            mx_configured: domain.mx_ok,
            created_at: timestamp(domain.created_at),
            deadline: timestamp(domain.deadline),
            verified_at: domain.verified_at.map(timestamp),
            failure_reason: domain.failure_reason.map(|reason| reason.as_str()),
            managed_by: domain.managed_by.as_str(),
        }
    }
}

impl DomainList {
    pub(crate) fn new(domains: Vec<CustomDomain>, mx_host: &str) -> Self {
        Self { domains: domains.into_iter().map(|domain| DomainRecord::new(domain, mx_host)).collect() }
    }
}

impl CheckedDomain {
    pub(crate) fn new(record: DomainRecord, checked: CheckResult) -> Self {
        Self { record, txt_record: checked.txt_found, mx_record: checked.mx_found }
    }
}
