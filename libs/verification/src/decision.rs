//! What the records found do to a custom domain. Nothing here does I/O; time is an argument.

use jiff::{SignedDuration, Timestamp};
use tempmail_model::verification::{FailureReason, Finding, VerifyStatus};
use tempmail_store::DomainToCheck;
use uuid::Uuid;

use crate::finding::DomainFindings;

/// Time between two checks of a verified domain.
pub(crate) const RECHECK: SignedDuration = SignedDuration::from_hours(24);

/// Daily checks in a row that may find the records wrong before the domain is lost.
const LOST_DAYS: i16 = 7;

/// Why a domain is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckTrigger {
    /// It is its turn.
    Scheduled {
        /// Time between two checks of a pending domain.
        interval: SignedDuration,
    },
    /// Its owner asked. That does not move its turn, and a wrong record is held against it on
    /// its turn only.
    Requested,
}

/// What becomes of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is verified.
    Verify {
        /// Who loses the name to it.
        displaced: Option<Uuid>,
    },
    /// It is not, or was already.
    Update(DomainUpdate),
}

/// What becomes of a domain that is not verified just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainUpdate {
    /// It stays what it is.
    Keep {
        /// Daily checks in a row that found its records wrong.
        failed_checks: i16,
        /// When to look again; `None` leaves it.
        next_check_at: Option<Timestamp>,
    },
    /// It ends.
    Fail(FailureReason),
}

/// What becomes of `domain` by these findings at the moment `now`.
pub fn decide(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    occasion: CheckTrigger,
    now: Timestamp,
) -> Decision {
    match domain.status {
        VerifyStatus::Verified => Decision::Update(recheck(domain, findings, occasion, now)),
        VerifyStatus::Pending | VerifyStatus::Failed => claim(domain, findings, occasion, now),
    }
}

/// One that does not serve.
fn claim(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    occasion: CheckTrigger,
    now: Timestamp,
) -> Decision {
    if (findings.txt.finding, findings.mx.finding) == (Finding::Found, Finding::Found) {
        match (&domain.incumbent, findings.incumbent_txt) {
            (None, _) => return Decision::Verify { displaced: None },
            (Some(incumbent), Finding::Missing | Finding::Mismatch) => {
                return Decision::Verify { displaced: Some(incumbent.id) };
            }
            // Both are there, or nobody says that the incumbent's is not: the incumbent stays.
            (Some(_), Finding::Found | Finding::Unknown) => {}
        }
    }
    Decision::Update(unverified(domain, occasion, now))
}

/// One that does not serve and is not verified by now either.
pub(crate) fn unverified(domain: &DomainToCheck, occasion: CheckTrigger, now: Timestamp) -> DomainUpdate {
    if domain.status == VerifyStatus::Pending && domain.deadline <= now {
        return DomainUpdate::Fail(FailureReason::VerificationTimedOut);
    }
    let next_check_at = match (domain.status, occasion) {
        (VerifyStatus::Pending, CheckTrigger::Scheduled { interval }) => {
            Some(domain.deadline.min(now + interval))
        }
        _ => None,
    };
    DomainUpdate::Keep { failed_checks: domain.failed_checks, next_check_at }
}

/// One that serves.
fn recheck(
    domain: &DomainToCheck,
    findings: &DomainFindings,
    occasion: CheckTrigger,
    now: Timestamp,
) -> DomainUpdate {
    let found = [findings.txt.finding, findings.mx.finding];
    let is_wrong = found.iter().any(|finding| matches!(finding, Finding::Missing | Finding::Mismatch));
    let is_right = found.iter().all(|finding| *finding == Finding::Found);
    let is_due = matches!(occasion, CheckTrigger::Scheduled { .. });
    let failed_checks = match (is_right, is_wrong && is_due) {
        (true, _) => 0,
        (false, true) => domain.failed_checks + 1,
        (false, false) => domain.failed_checks,
    };
    if failed_checks >= LOST_DAYS {
        return DomainUpdate::Fail(FailureReason::RecordsLost);
    }
    DomainUpdate::Keep { failed_checks, next_check_at: is_due.then(|| now + RECHECK) }
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

    fn held() -> DomainToCheck {
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
    fn only_both_records_right_verify_in_any_state_that_does_not_serve() {
        for status in [VerifyStatus::Pending, VerifyStatus::Failed] {
            for occasion in [DUE, CheckTrigger::Requested] {
                for found in every_pair() {
                    let decision = decide(&domain(status), &found, occasion, now());
                    let is_right = (found.txt.finding, found.mx.finding) == (Found, Found);
                    assert_eq!(
                        decision == Decision::Verify { displaced: None },
                        is_right,
                        "{status:?} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_holder_loses_the_name_only_where_its_record_is_absent() {
        for incumbent_txt in ALL {
            let decision = decide(&held(), &findings(Found, Found, incumbent_txt), DUE, now());
            let displaced = Decision::Verify { displaced: Some(Uuid::from_u128(2)) };
            assert_eq!(
                decision == displaced,
                matches!(incumbent_txt, Missing | Mismatch),
                "{incumbent_txt:?}"
            );
            let half = decide(&held(), &findings(Found, Unknown, incumbent_txt), DUE, now());
            assert!(is_kept(half), "{half:?}");
        }
    }

    #[test]
    fn a_pending_one_ends_at_its_deadline_whatever_dns_says() {
        let late = now() + SignedDuration::from_hours(1);
        for occasion in [DUE, CheckTrigger::Requested] {
            for found in every_pair().filter(|found| (found.txt.finding, found.mx.finding) != (Found, Found))
            {
                let decision = decide(&domain(VerifyStatus::Pending), &found, occasion, late);
                assert_eq!(
                    decision,
                    Decision::Update(DomainUpdate::Fail(FailureReason::VerificationTimedOut)),
                    "{found:?}"
                );
                let early = late - SignedDuration::from_nanos(1);
                let decision = decide(&domain(VerifyStatus::Pending), &found, occasion, early);
                assert!(is_kept(decision), "{found:?}");
            }
        }
        let held = decide(&held(), &findings(Found, Found, Found), DUE, late);
        assert_eq!(held, Decision::Update(DomainUpdate::Fail(FailureReason::VerificationTimedOut)));
    }

    #[test]
    fn a_pending_one_is_looked_at_every_interval_and_at_its_deadline() {
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
    fn seven_wrong_days_in_a_row_lose_a_verified_one() {
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
    fn asking_is_not_held_against_a_verified_one() {
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
