//! What the findings of a check mean for a custom domain. Nothing here does I/O; the time is an argument.

use jiff::{SignedDuration, Timestamp};
use tempmail_model::verification::{FailureReason, Finding, VerifyStatus};
use tempmail_store::DomainToCheck;
use uuid::Uuid;

use crate::vote::DomainFindings;

/// Time between two checks of a verified domain.
pub(crate) const RECHECK: SignedDuration = SignedDuration::from_hours(24);

/// Consecutive daily checks with a missing or different record after which a verified domain fails.
const FAILED_CHECKS_MAX: i16 = 7;

/// Why a domain is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckTrigger {
    /// A scheduled check.
    Scheduled {
        /// Time between two checks of a pending domain.
        interval: SignedDuration,
    },
    /// A request of its owner. It does not change the schedule, and a failed check does not count.
    Requested,
}

/// What a check means for a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It becomes verified.
    Verify {
        /// The domain that loses the name to it.
        displaced: Option<Uuid>,
    },
    /// It does not: it was verified before, or its records are not complete.
    Update(DomainUpdate),
}

/// The change of a domain that does not become verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DomainUpdate {
    /// It keeps its status.
    Keep {
        /// Consecutive daily checks that found a record missing or different.
        failed_checks: i16,
        /// When the next check is due; `None` does not change that.
        next_check_at: Option<Timestamp>,
    },
    /// It fails.
    Fail(FailureReason),
}

/// Decides what the findings mean for `domain` at `now`.
pub(crate) fn decide(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    trigger: CheckTrigger,
    now: Timestamp,
) -> Decision {
    match domain.status {
        VerifyStatus::Verified => Decision::Update(recheck(domain, findings, trigger, now)),
        VerifyStatus::Pending | VerifyStatus::Failed => claim(domain, findings, trigger, now),
    }
}

/// For a domain that does not serve.
fn claim(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    trigger: CheckTrigger,
    now: Timestamp,
) -> Decision {
    if (findings.txt.finding, findings.mx.finding) == (Finding::Found, Finding::Found) {
        match (&domain.incumbent, findings.incumbent_txt) {
            (None, _) => return Decision::Verify { displaced: None },
            (Some(incumbent), Finding::Missing | Finding::Mismatch) => {
                return Decision::Verify { displaced: Some(incumbent.id) };
            }
            // The record of the incumbent exists too, or no server voted on it: the incumbent stays.
            (Some(_), Finding::Found | Finding::Unknown) => {}
        }
    }
    Decision::Update(unverified(domain, trigger, now))
}

/// For a domain that does not serve and does not become verified.
pub(crate) fn unverified(domain: &DomainToCheck, trigger: CheckTrigger, now: Timestamp) -> DomainUpdate {
    if domain.status == VerifyStatus::Pending && domain.deadline <= now {
        return DomainUpdate::Fail(FailureReason::VerificationTimedOut);
    }
    let next_check_at = match (domain.status, trigger) {
        (VerifyStatus::Pending, CheckTrigger::Scheduled { interval }) => {
            Some(domain.deadline.min(now + interval))
        }
        _ => None,
    };
    DomainUpdate::Keep { failed_checks: domain.failed_checks, next_check_at }
}

/// For a domain that serves.
fn recheck(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    trigger: CheckTrigger,
    now: Timestamp,
) -> DomainUpdate {
    let found = [findings.txt.finding, findings.mx.finding];
    let any_failed = found.iter().any(|finding| matches!(finding, Finding::Missing | Finding::Mismatch));
    let all_found = found.iter().all(|finding| *finding == Finding::Found);
    let is_scheduled = matches!(trigger, CheckTrigger::Scheduled { .. });
    let failed_checks = match (all_found, any_failed && is_scheduled) {
        (true, _) => 0,
        (false, true) => domain.failed_checks + 1,
        (false, false) => domain.failed_checks,
    };
    if failed_checks >= FAILED_CHECKS_MAX {
        return DomainUpdate::Fail(FailureReason::RecordsLost);
    }
    DomainUpdate::Keep { failed_checks, next_check_at: is_scheduled.then(|| now + RECHECK) }
}

#[cfg(test)]
mod tests {
    use tempmail_model::verification::RecordFinding;
    use tempmail_store::Incumbent;

    use super::*;
    use Finding::{Found, Mismatch, Missing, Unknown};

    const ALL: [Finding; 4] = [Found, Missing, Mismatch, Unknown];
    const DUE: CheckTrigger = CheckTrigger::Scheduled { interval: SignedDuration::from_mins(5) };

    fn now() -> Timestamp {
        "2026-11-21T10:00:00Z".parse().unwrap()
    }

    fn domain(status: VerifyStatus) -> DomainToCheck {
        DomainToCheck {
            id: Uuid::from_u128(1),
            name: "ships.example".into(),
            token: "aa".into(),
            status,
            deadline: now() + SignedDuration::from_hours(1),
            failed_checks: 0,
            incumbent: None,
        }
    }

    fn with_incumbent() -> DomainToCheck {
        let incumbent = Incumbent { id: Uuid::from_u128(2), token: "bb".into() };
        DomainToCheck { incumbent: Some(incumbent), ..domain(VerifyStatus::Pending) }
    }

    fn is_kept(decision: Decision) -> bool {
        matches!(decision, Decision::Update(DomainUpdate::Keep { .. }))
    }

    fn findings(txt: Finding, mx: Finding, incumbent_txt: Finding) -> DomainFindings {
        let of = |finding| RecordFinding { finding, seen: Vec::new() };
        DomainFindings { txt: of(txt), mx: of(mx), incumbent_txt }
    }

    fn every_pair() -> impl Iterator<Item = DomainFindings> {
        ALL.into_iter().flat_map(|txt| ALL.into_iter().map(move |mx| findings(txt, mx, Unknown)))
    }

    #[test]
    fn verifies_only_if_both_records_are_found() {
        for status in [VerifyStatus::Pending, VerifyStatus::Failed] {
            for trigger in [DUE, CheckTrigger::Requested] {
                for found in every_pair() {
                    let decision = decide(&domain(status), &found, trigger, now());
                    let all_found = (found.txt.finding, found.mx.finding) == (Found, Found);
                    assert_eq!(
                        decision == Decision::Verify { displaced: None },
                        all_found,
                        "{status:?} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn displaces_an_incumbent_only_if_its_record_is_absent() {
        for incumbent_txt in ALL {
            let decision = decide(&with_incumbent(), &findings(Found, Found, incumbent_txt), DUE, now());
            let displaced = Decision::Verify { displaced: Some(Uuid::from_u128(2)) };
            assert_eq!(
                decision == displaced,
                matches!(incumbent_txt, Missing | Mismatch),
                "{incumbent_txt:?}"
            );
            let half = decide(&with_incumbent(), &findings(Found, Unknown, incumbent_txt), DUE, now());
            assert!(is_kept(half), "{half:?}");
        }
    }

    #[test]
    fn fails_a_pending_domain_at_its_deadline() {
        let late = now() + SignedDuration::from_hours(1);
        for trigger in [DUE, CheckTrigger::Requested] {
            for found in every_pair().filter(|found| (found.txt.finding, found.mx.finding) != (Found, Found))
            {
                let decision = decide(&domain(VerifyStatus::Pending), &found, trigger, late);
                assert_eq!(
                    decision,
                    Decision::Update(DomainUpdate::Fail(FailureReason::VerificationTimedOut)),
                    "{found:?}"
                );
                let early = late - SignedDuration::from_nanos(1);
                let decision = decide(&domain(VerifyStatus::Pending), &found, trigger, early);
                assert!(is_kept(decision), "{found:?}");
            }
        }
        let decision = decide(&with_incumbent(), &findings(Found, Found, Found), DUE, late);
        assert_eq!(decision, Decision::Update(DomainUpdate::Fail(FailureReason::VerificationTimedOut)));
    }

    #[test]
    fn checks_a_pending_domain_every_interval_and_at_its_deadline() {
        let next =
            |at: Timestamp| match decide(&domain(VerifyStatus::Pending), &DomainFindings::UNKNOWN, DUE, at) {
                Decision::Update(DomainUpdate::Keep { next_check_at, .. }) => next_check_at,
                other => panic!("{other:?}"),
            };
        assert_eq!(next(now()), Some(now() + SignedDuration::from_mins(5)));
        let deadline = now() + SignedDuration::from_hours(1);
        assert_eq!(next(deadline - SignedDuration::from_mins(2)), Some(deadline));
        let asked =
            decide(&domain(VerifyStatus::Pending), &DomainFindings::UNKNOWN, CheckTrigger::Requested, now());
        assert_eq!(asked, Decision::Update(DomainUpdate::Keep { failed_checks: 0, next_check_at: None }));
    }

    #[test]
    fn fails_a_verified_domain_after_seven_failed_checks_in_a_row() {
        let mut serving = domain(VerifyStatus::Verified);
        let days = [Missing, Mismatch, Unknown, Missing, Missing, Unknown, Missing, Missing];
        for wrong in days {
            match decide(&serving, &findings(wrong, Found, Unknown), DUE, now()) {
                Decision::Update(DomainUpdate::Keep { failed_checks, next_check_at }) => {
                    assert_eq!(next_check_at, Some(now() + SignedDuration::from_hours(24)));
                    serving.failed_checks = failed_checks;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(serving.failed_checks, 6, "days without an answer do not count");
        let right = decide(&serving, &findings(Found, Found, Unknown), DUE, now());
        assert!(matches!(right, Decision::Update(DomainUpdate::Keep { failed_checks: 0, .. })), "{right:?}");
        let wrong = decide(&serving, &findings(Found, Mismatch, Unknown), DUE, now());
        assert_eq!(wrong, Decision::Update(DomainUpdate::Fail(FailureReason::RecordsLost)));
    }

    #[test]
    fn a_requested_check_does_not_count_as_failed() {
        let serving = DomainToCheck { failed_checks: 6, ..domain(VerifyStatus::Verified) };
        for found in every_pair() {
            let failed_checks = if (found.txt.finding, found.mx.finding) == (Found, Found) { 0 } else { 6 };
            let decision = decide(&serving, &found, CheckTrigger::Requested, now());
            assert_eq!(
                decision,
                Decision::Update(DomainUpdate::Keep { failed_checks, next_check_at: None }),
                "{found:?}"
            );
        }
    }
}
