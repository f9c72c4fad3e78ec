//! The plan of a CustomDomain.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tempmail_crds::{
    CustomDomain, CustomDomainStatus, DnsRecord, DnsRecordType, RecordResult, Verification, VerificationState,
};
use tempmail_model::verification::{FailureReason, Finding, RecordFinding, VerifyStatus};
use tempmail_model::verify_token;
use tempmail_store::{DeclareError, Resource};
use uuid::Uuid;

use crate::kind::Kind as _;
use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::status::{
    ConditionStatus, ConditionType, ConditionUpdate, Message, Progress, Reason, StatusUpdate, message,
    to_seconds,
};

/// What the plan of a CustomDomain depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedCustomDomain {
    pub grant: Grant,
    /// The declared domain; `None` if it is reserved.
    pub name: Option<String>,
    /// The object's row.
    pub domain: Option<tempmail_store::CustomDomain>,
    pub predecessor: Option<Resource>,
    /// The annotation's value that requests a check, unless it was handled.
    pub check_requested: Option<String>,
    /// The annotation's value that was handled last.
    pub check_handled: Option<String>,
    /// The expected value of the MX record.
    pub mx_host: String,
}

/// A step for a CustomDomain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CustomDomainStep {
    /// Take the domain out of service, since the object is no longer accepted.
    Deactivate,
    /// Release the row of the predecessor.
    ReleasePredecessor,
    /// Create, adopt or reactivate the domain.
    Declare { tenant: Uuid, name: String },
    /// Check the DNS records, as requested.
    Check { domain: Uuid, requested: String },
}

/// Decides on the next step.
pub(super) fn plan(
    object: &CustomDomain,
    observed: &ObservedCustomDomain,
) -> Plan<CustomDomainStep, CustomDomainStatus> {
    let active = observed.domain.as_ref().filter(|domain| domain.active);
    let tenant = match observed.grant.tenant(object) {
        Ok(tenant) => tenant,
        Err(_) if active.is_some() => return Plan::Step(CustomDomainStep::Deactivate),
        Err((message, progress)) => {
            return Plan::Done(not_accepted(status(object, observed), message, progress));
        }
    };
    let Some(name) = &observed.name else {
        let (status, message) = (status(object, observed), message::domain_reserved(&object.spec.domain));
        return Plan::Done(not_accepted(status, message, Progress::Stalled));
    };
    let Some(domain) = active else {
        return Plan::Step(if observed.predecessor.is_some() {
            CustomDomainStep::ReleasePredecessor
        } else {
            CustomDomainStep::Declare { tenant, name: name.clone() }
        });
    };
    if let Some(requested) = &observed.check_requested {
        return Plan::Step(CustomDomainStep::Check { domain: domain.id, requested: requested.clone() });
    }
    Plan::Done(accepted(domain, &observed.mx_host, status(object, observed)))
}

/// The status of an object whose domain can't be declared.
pub(super) fn refused(
    object: &CustomDomain,
    observed: &ObservedCustomDomain,
    refusal: &Refusal,
) -> StatusUpdate<CustomDomainStatus> {
    let status = CustomDomainStatus {
        last_handled_verify_at: observed.check_handled.clone(),
        ..CustomDomainStatus::default()
    };
    let (domain, tenant) = (&object.spec.domain, &object.spec.tenant_ref.name);
    let message = match refusal {
        Refusal::HeldByAnotherCluster(holder) => message::held_by_another_cluster(holder),
        Refusal::Claimed(holder) => message::domain_claimed(domain, holder.as_ref()),
        Refusal::LimitReached(usage) => message::limit_reached(tenant, CustomDomain::PLURAL, *usage),
        Refusal::Row(DeclareError::NotAdopted) => {
            message::exists_unmanaged(tenant, &format!("the custom domain {domain}"))
        }
        Refusal::Row(DeclareError::TenantDisabled) => message::tenant_suspended(tenant),
        // A custom domain has no Secret.
        Refusal::Row(_) | Refusal::Secret(_) => message::domain_reserved(domain),
    };
    not_accepted(status, message, Progress::Stalled)
}

fn not_accepted(
    status: CustomDomainStatus,
    message: Message,
    progress: Progress,
) -> StatusUpdate<CustomDomainStatus> {
    let verified = verified(ConditionStatus::False, message.clone());
    StatusUpdate::not_accepted(status, message, progress).with(verified)
}

fn verified(status: ConditionStatus, message: Message) -> ConditionUpdate {
    ConditionUpdate::new(ConditionType::Verified, status, message)
}

/// The status of an object whose domain is declared. `mx_host` is the expected mail exchanger.
fn accepted(
    domain: &tempmail_store::CustomDomain,
    mx_host: &str,
    status: CustomDomainStatus,
) -> StatusUpdate<CustomDomainStatus> {
    match domain.status {
        VerifyStatus::Verified => {
            let message = message::records_found(&domain.name);
            StatusUpdate::ready(status).with(verified(ConditionStatus::True, message))
        }
        VerifyStatus::Pending => pending(domain, mx_host, status),
        VerifyStatus::Failed => {
            let message = failure(domain);
            let verified = verified(ConditionStatus::False, message.clone());
            StatusUpdate::not_ready(status, message, Progress::Stalled).with(verified)
        }
    }
}

/// Why the verification failed.
fn failure(domain: &tempmail_store::CustomDomain) -> Message {
    match domain.failure_reason {
        Some(FailureReason::RecordsLost) => message::records_lost(&domain.name),
        Some(FailureReason::ClaimedByAnother) => message::claimed_by_another(&domain.name),
        Some(FailureReason::VerificationTimedOut) | None => {
            message::verification_timed_out(&domain.name, to_seconds(domain.deadline))
        }
    }
}

fn pending(
    domain: &tempmail_store::CustomDomain,
    mx_host: &str,
    status: CustomDomainStatus,
) -> StatusUpdate<CustomDomainStatus> {
    let message = lacking(domain, mx_host);
    let is_verified = match message.reason {
        Reason::DnsLookupFailed => ConditionStatus::Unknown,
        _ => ConditionStatus::False,
    };
    let verified = verified(is_verified, message.clone());
    StatusUpdate::not_ready(status, message, Progress::Reconciling).with(verified)
}

/// What a pending domain lacks. The TXT record comes first, since it proves the ownership.
fn lacking(domain: &tempmail_store::CustomDomain, mx_host: &str) -> Message {
    let (name, txt_value) = (&domain.name, verify_token::txt_value(&domain.token));
    let (Some(txt), Some(mx)) = (&domain.txt, &domain.mx) else {
        return message::waiting_for_dns(name, &txt_value, mx_host);
    };
    match (txt.finding, mx.finding) {
        (Finding::Missing, _) => message::txt_record_missing(name, &txt_value),
        (Finding::Mismatch, _) => message::txt_record_mismatch(name, &txt_value, &txt.seen),
        (_, Finding::Missing) => message::mx_record_missing(name, mx_host),
        (_, Finding::Mismatch) => message::mx_record_mismatch(name, mx_host, &mx.seen),
        (Finding::Unknown, _) | (_, Finding::Unknown) => message::dns_lookup_failed(name),
        (Finding::Found, Finding::Found) => message::waiting_for_dns(name, &txt_value, mx_host),
    }
}

/// The status without its conditions.
fn status(object: &CustomDomain, observed: &ObservedCustomDomain) -> CustomDomainStatus {
    CustomDomainStatus {
        domain_id: observed.domain.as_ref().map(|domain| domain.id.to_string()),
        verification: observed.domain.as_ref().map(|domain| verification(object, domain, &observed.mx_host)),
        last_handled_verify_at: observed.check_handled.clone(),
        ..CustomDomainStatus::default()
    }
}

fn verification(object: &CustomDomain, domain: &tempmail_store::CustomDomain, mx_host: &str) -> Verification {
    let name = &object.spec.domain;
    let record = |kind, name: String, value: String, priority, found: &Option<RecordFinding>| DnsRecord {
        kind,
        name,
        value,
        priority,
        result: found.as_ref().map_or(RecordResult::Unknown, |found| result(found.finding)),
        observed: found.as_ref().map(|found| found.seen.clone()).unwrap_or_default(),
    };
    Verification {
        state: match domain.status {
            VerifyStatus::Pending => VerificationState::Pending,
            VerifyStatus::Verified => VerificationState::Verified,
            VerifyStatus::Failed => VerificationState::Failed,
        },
        reason: domain.failure_reason.map(|reason| reason.as_str().to_owned()),
        deadline: Time(to_seconds(domain.deadline)),
        verified_at: domain.verified_at.map(|at| Time(to_seconds(at))),
        records: vec![
            record(
                DnsRecordType::Txt,
                verify_token::txt_host(name),
                verify_token::txt_value(&domain.token),
                None,
                &domain.txt,
            ),
            record(DnsRecordType::Mx, name.clone(), mx_host.to_owned(), Some(10), &domain.mx),
        ],
    }
}

fn result(finding: Finding) -> RecordResult {
    match finding {
        Finding::Found => RecordResult::Found,
        Finding::Missing => RecordResult::Missing,
        Finding::Mismatch => RecordResult::Mismatch,
        Finding::Unknown => RecordResult::Unknown,
    }
}

#[cfg(test)]
mod tests;
