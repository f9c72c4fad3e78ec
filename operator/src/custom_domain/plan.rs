//! What is to be done for a custom domain, and how it stands: decided without I/O.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tempmail_crds::{
    CustomDomain, CustomDomainStatus, DnsRecord, DnsRecordType, RecordResult, Verification, VerificationState,
};
use tempmail_model::verification::{FailureReason, Finding, RecordFinding, VerifyStatus};
use tempmail_model::verify_token;
use tempmail_store::DeclareError;
use uuid::Uuid;

use crate::standing::{ConditionType, Outlook, Reason, Standing, Truth, Verdict};
use crate::status::to_seconds;
use crate::tenancy::Tenancy;

/// All that decides about an object.
#[derive(Debug)]
pub(super) struct World {
    pub tenancy: Tenancy,
    /// The domain as it is declared; `None` where nobody can have it.
    pub name: Option<String>,
    /// The object's row.
    pub domain: Option<tempmail_store::CustomDomain>,
    /// A look at the records that the object asks for, and that was not done yet.
    pub asked: Option<String>,
    /// The one that was done last.
    pub handled: Option<String>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next<'a> {
    Step(Step<'a>),
    Done(Standing<CustomDomainStatus>),
}

/// What may be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The object is not accepted any more: nothing is to reach the domain.
    Withhold,
    /// There is no domain yet, or it was withheld.
    Declare { tenant: Uuid, name: &'a str },
    /// Somebody asked for a look at its records.
    Check { domain: Uuid, asked: &'a str },
}

/// Decides what comes next.
pub(super) fn plan<'a>(object: &CustomDomain, world: &'a World, mx_host: &str) -> Next<'a> {
    let tenant = match world.tenancy.permitted() {
        Ok(tenant) => tenant,
        Err(_) if world.domain.as_ref().is_some_and(|domain| domain.active) => {
            return Next::Step(Step::Withhold);
        }
        Err((reason, outlook)) => {
            return Next::Done(
                Standing::refused(status(object, world, mx_host), reason, outlook).unverified(reason),
            );
        }
    };
    if world.domain.as_ref().is_some_and(|domain| domain.active && domain.tenant != tenant) {
        // It is another tenant's than the one of that name now.
        return Next::Step(Step::Withhold);
    }
    let Some(name) = &world.name else {
        let status = status(object, world, mx_host);
        return Next::Done(
            Standing::refused(status, Reason::ReservedDomain, Outlook::Stuck)
                .unverified(Reason::ReservedDomain),
        );
    };
    let domain = match &world.domain {
        Some(domain) if domain.active => domain,
        _ => return Next::Step(Step::Declare { tenant, name }),
    };
    if let Some(asked) = &world.asked {
        return Next::Step(Step::Check { domain: domain.id, asked });
    }
    Next::Done(standing(domain, status(object, world, mx_host)))
}

/// How an object stands whose domain could not be declared.
pub(super) fn refused(world: &World, refused: DeclareError) -> Standing<CustomDomainStatus> {
    let reason = match refused {
        DeclareError::ManagedByAnother => Reason::DomainClaimed,
        DeclareError::NotAdopted => Reason::ExistsUnmanaged,
        DeclareError::TenantChanged => Reason::TenantReplaced,
        DeclareError::TenantDisabled => Reason::TenantSuspended,
        DeclareError::LimitReached => Reason::QuotaExceeded,
        _ => Reason::ReservedDomain,
    };
    let status =
        CustomDomainStatus { last_handled_verify_at: world.handled.clone(), ..CustomDomainStatus::default() };
    Standing::refused(status, reason, Outlook::Stuck).unverified(reason)
}

impl Standing<CustomDomainStatus> {
    fn unverified(self, reason: Reason) -> Self {
        self.with(Verdict::new(ConditionType::Verified, Truth::False, reason))
    }
}

/// How a domain stands that is declared.
fn standing(
    domain: &tempmail_store::CustomDomain,
    status: CustomDomainStatus,
) -> Standing<CustomDomainStatus> {
    let verified = |truth, reason| Verdict::new(ConditionType::Verified, truth, reason);
    match (domain.status, domain.failure_reason) {
        (VerifyStatus::Verified, _) => {
            Standing::ready(status).with(verified(Truth::True, Reason::RecordsFound))
        }
        (VerifyStatus::Pending, _) => {
            let reason = pending_reason(domain);
            let truth = if reason == Reason::DnsLookupFailed { Truth::Unknown } else { Truth::False };
            Standing::not_ready(status, reason, Outlook::Waits).with(verified(truth, reason))
        }
        (VerifyStatus::Failed, failure) => {
            let reason = match failure {
                Some(FailureReason::RecordsLost) => Reason::RecordsLost,
                Some(FailureReason::ClaimedByAnother) => Reason::ClaimedByAnother,
                Some(FailureReason::VerificationTimedOut) | None => Reason::VerificationTimedOut,
            };
            Standing::not_ready(status, reason, Outlook::Stuck).with(verified(Truth::False, reason))
        }
    }
}

/// What a pending domain lacks; the TXT record first, since it proves whose it is.
fn pending_reason(domain: &tempmail_store::CustomDomain) -> Reason {
    let finding = |found: &Option<RecordFinding>| found.as_ref().map(|found| found.finding);
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

/// The status, its conditions aside.
fn status(object: &CustomDomain, world: &World, mx_host: &str) -> CustomDomainStatus {
    CustomDomainStatus {
        domain_id: world.domain.as_ref().map(|domain| domain.id.to_string()),
        verification: world.domain.as_ref().map(|domain| verification(object, domain, mx_host)),
        last_handled_verify_at: world.handled.clone(),
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
        Finding::Found => RecordResult::Right,
        Finding::Missing => RecordResult::Missing,
        Finding::Mismatch => RecordResult::Mismatch,
        Finding::Unknown => RecordResult::Unknown,
    }
}

#[cfg(test)]
mod tests;
