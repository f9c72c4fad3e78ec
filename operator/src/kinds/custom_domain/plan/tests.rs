//! From every observed state the plan ends within the step limit, with a status that fits the state.

use jiff::Timestamp;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tempmail_crds::{AdoptionPolicy, CustomDomainSpec, DeletionPolicy, TenantRef};
use tempmail_store::{LimitUsage, ManagedBy};

use super::*;
use crate::reconcile::driver::STEP_LIMIT;
use crate::reconcile::vanished::example_predecessor;

const TENANT: Uuid = Uuid::from_u128(1);
const FORMER_TENANT: Uuid = Uuid::from_u128(2);
const REFUSALS: [DeclareError; 5] = [
    DeclareError::ManagedByAnother,
    DeclareError::NotAdopted,
    DeclareError::TenantDisabled,
    DeclareError::LimitReached,
    DeclareError::OverlapsSystemDomain,
];

/// How the store and the name servers behave when a step is carried out.
#[derive(Debug, Clone)]
struct Behaviour {
    /// Why a new domain is refused, if it is.
    refusal: Option<DeclareError>,
    /// What the check finds.
    checked: (VerifyStatus, Option<FailureReason>),
}

fn object() -> CustomDomain {
    CustomDomain::new(
        "ours",
        CustomDomainSpec {
            tenant_ref: TenantRef { name: "team".into() },
            domain: "ships.example".into(),
            adoption_policy: AdoptionPolicy::IfUnowned,
            deletion_policy: DeletionPolicy::Delete,
        },
    )
}

fn pending_domain(tenant: Uuid) -> tempmail_store::CustomDomain {
    tempmail_store::CustomDomain {
        id: Uuid::from_u128(3),
        tenant,
        name: "ships.example".into(),
        status: VerifyStatus::Pending,
        token: "aa".into(),
        failure_reason: None,
        txt_ok: false,
        mx_ok: false,
        txt: None,
        mx: None,
        created_at: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        verified_at: None,
        managed_by: ManagedBy::Kubernetes,
        active: true,
    }
}

fn any_status() -> impl Strategy<Value = (VerifyStatus, Option<FailureReason>)> {
    use FailureReason::{ClaimedByAnother, RecordsLost, VerificationTimedOut};
    select(vec![
        (VerifyStatus::Pending, None),
        (VerifyStatus::Verified, None),
        (VerifyStatus::Failed, Some(VerificationTimedOut)),
        (VerifyStatus::Failed, Some(RecordsLost)),
        (VerifyStatus::Failed, Some(ClaimedByAnother)),
    ])
}

fn any_found() -> impl Strategy<Value = Option<RecordFinding>> {
    let findings = vec![Finding::Found, Finding::Missing, Finding::Mismatch, Finding::Unknown];
    option::of(select(findings).prop_map(|finding| RecordFinding { finding, seen: Vec::new() }))
}

fn any_domain() -> impl Strategy<Value = tempmail_store::CustomDomain> {
    (any_status(), any_found(), any_found(), any::<bool>()).prop_map(
        |((status, failure_reason), txt, mx, active)| tempmail_store::CustomDomain {
            // In the store an inactive domain is pending, or failed because another tenant claimed it.
            status: if active || status == VerifyStatus::Failed { status } else { VerifyStatus::Pending },
            failure_reason,
            txt,
            mx,
            active,
            ..pending_domain(TENANT)
        },
    )
}

/// The tenant that the object has.
fn tenant_of(grant: Grant) -> Uuid {
    if let Grant::Replaced(former) = grant { former } else { TENANT }
}

fn any_observed() -> impl Strategy<Value = ObservedCustomDomain> {
    let grants = [
        Grant::Granted(TENANT),
        Grant::TenantNotReady,
        Grant::Replaced(FORMER_TENANT),
        Grant::NotGranted { progress: Progress::Reconciling, former: None },
        Grant::NotGranted { progress: Progress::Stalled, former: Some(FORMER_TENANT) },
    ];
    let name = prop::bool::weighted(0.9).prop_map(|usable| usable.then(|| "ships.example".to_owned()));
    let text = || option::of("[a-z]{1,3}");
    let predecessor = option::weighted(0.3, Just(example_predecessor()));
    (select(grants.to_vec()), name, option::of(any_domain()), predecessor, text(), text()).prop_map(
        |(grant, name, domain, predecessor, check_requested, check_handled)| ObservedCustomDomain {
            grant,
            name,
            domain: domain.map(|domain| tempmail_store::CustomDomain { tenant: tenant_of(grant), ..domain }),
            predecessor,
            check_requested,
            check_handled,
            mx_host: "mx.mail.example".to_owned(),
        },
    )
}

fn any_behaviour() -> impl Strategy<Value = Behaviour> {
    (option::weighted(0.3, select(&REFUSALS[..])), any_status())
        .prop_map(|(refusal, checked)| Behaviour { refusal, checked })
}

fn refusal(error: DeclareError) -> Refusal {
    match error {
        DeclareError::ManagedByAnother => Refusal::Claimed(None),
        DeclareError::LimitReached => Refusal::LimitReached(LimitUsage { used: 1, limit: 1 }),
        error => Refusal::Row(error),
    }
}

/// Changes the observed state by a step, or returns why the domain can't be declared.
fn carry_out(
    observed: &mut ObservedCustomDomain,
    step: &CustomDomainStep,
    behaviour: &Behaviour,
) -> Result<(), DeclareError> {
    match (step, &mut observed.domain) {
        (CustomDomainStep::ReleasePredecessor, _) => observed.predecessor = None,
        (CustomDomainStep::Deactivate, Some(domain)) => {
            (domain.active, domain.status, domain.failure_reason) = (false, VerifyStatus::Pending, None);
        }
        (CustomDomainStep::Declare { tenant, .. }, Some(domain)) => {
            assert_eq!(domain.tenant, *tenant);
            (domain.active, domain.status, domain.failure_reason) = (true, VerifyStatus::Pending, None);
        }
        (CustomDomainStep::Declare { tenant, .. }, none) => match behaviour.refusal {
            Some(refusal) => return Err(refusal),
            None => *none = Some(pending_domain(*tenant)),
        },
        (CustomDomainStep::Check { .. }, Some(domain)) => {
            (domain.status, domain.failure_reason) = behaviour.checked;
            observed.check_handled = observed.check_requested.take();
        }
        (step, None) => panic!("{step:?} without a domain"),
    }
    Ok(())
}

/// Plans and carries out as the driver does.
fn converge(
    mut observed: ObservedCustomDomain,
    behaviour: &Behaviour,
) -> (ObservedCustomDomain, StatusUpdate<CustomDomainStatus>) {
    let object = object();
    for _ in 0..STEP_LIMIT {
        let step = match plan(&object, &observed) {
            Plan::Done(update) => return (observed, update),
            Plan::Step(step) => step,
        };
        assert!(!matches!(step, CustomDomainStep::Declare { .. }) || observed.predecessor.is_none());
        if let Err(error) = carry_out(&mut observed, &step, behaviour) {
            let update = refused(&object, &observed, &refusal(error));
            return (observed, update);
        }
    }
    panic!("the plan does not end: {observed:?}");
}

fn status_of(update: &StatusUpdate<CustomDomainStatus>, kind: ConditionType) -> Option<ConditionStatus> {
    update.conditions.iter().find(|condition| condition.kind == kind).map(|condition| condition.status)
}

#[test]
fn names_the_record_with_the_expected_value_and_the_one_that_was_found() {
    let shown = |txt: Option<(Finding, &str)>, mx: Option<(Finding, &str)>| {
        let found = |(finding, seen): (Finding, &str)| RecordFinding { finding, seen: vec![seen.to_owned()] };
        let mut domain = pending_domain(TENANT);
        (domain.txt, domain.mx) = (txt.map(found), mx.map(found));
        format!("{:?}", lacking(&domain, "mx.mail.example"))
    };
    let (correct, missing) = (Some((Finding::Found, "")), Some((Finding::Missing, "")));
    let another = |value| Some((Finding::Mismatch, value));
    let (txt, mx) = ("TXT record at _tempmail.ships.example ", "MX record at ships.example ");
    let (txt_value, mx_value) = ("tempmail-verify=aa", "10 mx.mail.example");
    for (shown, words) in [
        (shown(None, None), vec![txt, txt_value, mx, mx_value]),
        (shown(missing, correct), vec![txt, txt_value]),
        (shown(another("tempmail-verify=bb"), correct), vec![txt, txt_value, "tempmail-verify=bb"]),
        (shown(correct, missing), vec![mx, mx_value]),
        (shown(correct, another("10 mx.other.example")), vec![mx, mx_value, "10 mx.other.example"]),
    ] {
        for word in words {
            assert!(shown.contains(word), "{word}: {shown}");
        }
    }
}

proptest! {
    #[test]
    fn converges_from_every_state_to_a_status_that_fits(
        observed in any_observed(),
        behaviour in any_behaviour(),
    ) {
        let (observed, update) = converge(observed, &behaviour);
        let status_of = |kind| status_of(&update, kind);
        let is_ready = status_of(ConditionType::Ready) == Some(ConditionStatus::True);
        let domain = observed.domain.as_ref();
        let active = domain.filter(|domain| domain.active);

        // kstatus: in progress, or failed, or neither and ready.
        let summaries = [status_of(ConditionType::Reconciling), status_of(ConditionType::Stalled)];
        prop_assert_eq!(summaries.iter().flatten().count(), usize::from(!is_ready), "{:?}", update);

        let is_verified = status_of(ConditionType::Verified) == Some(ConditionStatus::True);
        prop_assert_eq!(is_ready, is_verified, "{:?}", update);
        if is_ready {
            prop_assert_eq!(status_of(ConditionType::Accepted), Some(ConditionStatus::True));
            prop_assert_eq!(observed.grant, Grant::Granted(TENANT));
            let verified = active.map(|domain| (domain.status, domain.tenant));
            prop_assert_eq!(verified, Some((VerifyStatus::Verified, TENANT)));
        }
        if let Some(active) = active {
            prop_assert_eq!(observed.grant, Grant::Granted(TENANT), "active without a grant");
            prop_assert_eq!(active.tenant, TENANT, "active for another tenant than the object's");
        }
        prop_assert!(update.status.verification.is_none() || domain.is_some());
        for condition in &update.conditions {
            let same = update.conditions.iter().filter(|other| other.kind == condition.kind);
            prop_assert_eq!(same.count(), 1, "one condition per type");
        }
    }
}
