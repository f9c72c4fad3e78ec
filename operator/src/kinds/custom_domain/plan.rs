//! The plan of a CustomDomain.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tempmail_crds::{
    CustomDomain, CustomDomainStatus, DnsRecord, DnsRecordType, RecordResult, Verification, VerificationState,
};
use tempmail_model::verification::{FailureReason, Finding, RecordFinding, VerifyStatus};
use tempmail_model::verify_token;
use tempmail_store::{DeclareError, Resource};
use uuid::Uuid;

use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::status::{
    ConditionStatus, ConditionType, ConditionUpdate, Progress, Reason, StatusUpdate, to_seconds,
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
    let tenant = match observed.grant.tenant() {
        Ok(tenant) => tenant,
        Err(_) if active.is_some() => return Plan::Step(CustomDomainStep::Deactivate),
        Err((reason, progress)) => {
            return Plan::Done(not_accepted(status(object, observed), reason, progress));
        }
    };
    if active.is_some_and(|domain| domain.tenant != tenant) {
        // The domain belongs to a former Tenant with the same name.
        return Plan::Step(CustomDomainStep::Deactivate);
    }
    let Some(name) = &observed.name else {
        let status = status(object, observed);
        return Plan::Done(not_accepted(status, Reason::ReservedDomain, Progress::Stalled));
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
    Plan::Done(accepted(domain, status(object, observed)))
}

/// The status of an object whose domain can't be declared.
pub(super) fn refused(observed: &ObservedCustomDomain, refusal: Refusal) -> StatusUpdate<CustomDomainStatus> {
    let status = CustomDomainStatus {
        last_handled_verify_at: observed.check_handled.clone(),
        ..CustomDomainStatus::default()
    };
    let reason = match refusal {
        Refusal::Row(DeclareError::ManagedByAnother) => Reason::DomainClaimed,
        Refusal::Row(DeclareError::NotAdopted) => Reason::ExistsUnmanaged,
        Refusal::Row(DeclareError::TenantChanged) => Reason::TenantReplaced,
        Refusal::Row(DeclareError::TenantDisabled) => Reason::TenantSuspended,
        Refusal::Row(DeclareError::LimitReached) => Reason::QuotaExceeded,
        Refusal::Row(_) => Reason::ReservedDomain,
        Refusal::Secret(error) => return error.status_update(status),
    };
    not_accepted(status, reason, Progress::Stalled)
}

fn not_accepted(
    status: CustomDomainStatus,
    reason: Reason,
    progress: Progress,
) -> StatusUpdate<CustomDomainStatus> {
    StatusUpdate::not_accepted(status, reason, progress).with(verified(ConditionStatus::False, reason))
}

fn verified(status: ConditionStatus, reason: Reason) -> ConditionUpdate {
    ConditionUpdate::new(ConditionType::Verified, status, reason)
}

/// The status of an object whose domain is declared.
fn accepted(
    domain: &tempmail_store::CustomDomain,
    status: CustomDomainStatus,
) -> StatusUpdate<CustomDomainStatus> {
    match (domain.status, domain.failure_reason) {
        (VerifyStatus::Verified, _) => {
            StatusUpdate::ready(status).with(verified(ConditionStatus::True, Reason::RecordsFound))
        }
        (VerifyStatus::Pending, _) => pending(domain, status),
        (VerifyStatus::Failed, failure) => {
            let reason = match failure {
                Some(FailureReason::RecordsLost) => Reason::RecordsLost,
                Some(FailureReason::ClaimedByAnother) => Reason::ClaimedByAnother,
                Some(FailureReason::VerificationTimedOut) | None => Reason::VerificationTimedOut,
            };
            StatusUpdate::not_ready(status, reason, Progress::Stalled)
                .with(verified(ConditionStatus::False, reason))
        }
    }
}

fn pending(
    domain: &tempmail_store::CustomDomain,
    status: CustomDomainStatus,
) -> StatusUpdate<CustomDomainStatus> {
    let reason = pending_reason(domain);
    let is_verified =
        if reason == Reason::DnsLookupFailed { ConditionStatus::Unknown } else { ConditionStatus::False };
    let update =
        StatusUpdate::not_ready(status, reason, Progress::Reconciling).with(verified(is_verified, reason));
    let (txt, mx) = (verify_token::txt_host(&domain.name), &domain.name);
    match reason {
        Reason::TxtRecordMissing => update.with_message(missing("TXT", &txt)),
        Reason::TxtRecordMismatch => update.with_message(mismatch("TXT", &txt)),
        Reason::MxRecordMissing => update.with_message(missing("MX", mx)),
        Reason::MxRecordMismatch => update.with_message(mismatch("MX", mx)),
        _ => update,
    }
}

fn missing(kind: &str, name: &str) -> String {
    format!("The {kind} record at {name} does not exist. Create it; see status.verification.records.")
}

fn mismatch(kind: &str, name: &str) -> String {
    format!(
        "The {kind} record at {name} does not have the expected value. Correct it; see \
         status.verification.records."
    )
}

/// What a pending domain lacks. The TXT record comes first, since it proves the ownership.
fn pending_reason(domain: &tempmail_store::CustomDomain) -> Reason {
    let finding = |record: &Option<RecordFinding>| record.as_ref().map(|record| record.finding);
    match (finding(&domain.txt), finding(&domain.mx)) {
        (None, _) | (_, None) => Reason::WaitingForDns,
        (Some(Finding::Missing), _) => Reason::TxtRecordMissing,
        (Some(Finding::Mismatch), _) => Reason::TxtRecordMismatch,
        (_, Some(Finding::Missing)) => Reason::MxRecordMissing,
        (_, Some(Finding::Mismatch)) => Reason::MxRecordMismatch,
        (Some(Finding::Unknown), _) | (_, Some(Finding::Unknown)) => Reason::DnsLookupFailed,
        (Some(Finding::Found), Some(Finding::Found)) => Reason::WaitingForDns,
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
