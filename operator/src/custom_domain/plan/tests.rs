//! From any world, carrying out what is planned ends soon, in a standing that fits the world.

use jiff::Timestamp;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tempmail_crds::{AdoptionPolicy, CustomDomainSpec, DeletionPolicy, TenantRef};
use tempmail_store::ManagedBy;

use super::*;
use crate::custom_domain::STEPS;

const MX_HOST: &str = "mx.mail.example";
const TENANT: Uuid = Uuid::from_u128(1);
const FORMER_TENANT: Uuid = Uuid::from_u128(2);
const REFUSALS: [DeclareError; 5] = [
    DeclareError::ManagedByAnother,
    DeclareError::NotAdopted,
    DeclareError::TenantDisabled,
    DeclareError::LimitReached,
    DeclareError::OverlapsSystemDomain,
];

/// What a world may do by itself when a step is carried out.
#[derive(Debug, Clone)]
struct Fate {
    /// Why a new domain is not made, if it is not.
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

fn pending(tenant: Uuid) -> tempmail_store::CustomDomain {
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
    let tenant = select(&[TENANT, FORMER_TENANT][..]);
    (tenant, any_status(), any_found(), any_found(), any::<bool>()).prop_map(
        |(tenant, (status, failure_reason), txt, mx, active)| tempmail_store::CustomDomain {
            // As the store has it: one that is withheld is pending, or another's by now.
            status: if active || status == VerifyStatus::Failed { status } else { VerifyStatus::Pending },
            failure_reason,
            txt,
            mx,
            active,
            ..pending(tenant)
        },
    )
}

fn any_world() -> impl Strategy<Value = World> {
    let tenancies = [
        Tenancy::Permitted(TENANT),
        Tenancy::NotReady,
        Tenancy::NotPermitted(Outlook::Waits),
        Tenancy::NotPermitted(Outlook::Stuck),
    ];
    let name = prop::bool::weighted(0.9).prop_map(|usable| usable.then(|| "ships.example".to_owned()));
    let text = || option::of("[a-z]{1,3}");
    (select(tenancies.to_vec()), name, option::of(any_domain()), text(), text())
        .prop_map(|(tenancy, name, domain, asked, handled)| World { tenancy, name, domain, asked, handled })
}

fn any_fate() -> impl Strategy<Value = Fate> {
    (option::weighted(0.3, select(&REFUSALS[..])), any_status())
        .prop_map(|(refusal, checked)| Fate { refusal, checked })
}

/// Changes the world by a step, or says why the domain can't be declared.
fn carry_out(world: &mut World, step: &StepTaken, fate: &Fate) -> Result<(), DeclareError> {
    match (step, &mut world.domain) {
        (StepTaken::Withhold, Some(domain)) => {
            (domain.active, domain.status, domain.failure_reason) = (false, VerifyStatus::Pending, None);
        }
        (StepTaken::Declare(tenant), Some(domain)) if domain.tenant != *tenant => {
            return Err(DeclareError::TenantChanged);
        }
        (StepTaken::Declare(_), Some(domain)) => {
            (domain.active, domain.status, domain.failure_reason) = (true, VerifyStatus::Pending, None);
        }
        (StepTaken::Declare(tenant), none) => match fate.refusal {
            Some(refusal) => return Err(refusal),
            None => *none = Some(pending(*tenant)),
        },
        (StepTaken::Check, Some(domain)) => {
            (domain.status, domain.failure_reason) = fate.checked;
            world.handled = world.asked.take();
        }
        (step, None) => panic!("{step:?} without a domain"),
    }
    Ok(())
}

/// A step that borrows nothing of the world.
#[derive(Debug)]
enum StepTaken {
    Withhold,
    Declare(Uuid),
    Check,
}

/// Looks and acts as a reconciliation does.
fn settled(mut world: World, fate: &Fate) -> (World, Standing<CustomDomainStatus>) {
    let object = object();
    for _ in 0..STEPS {
        let step = match plan(&object, &world, MX_HOST) {
            Next::Done(standing) => return (world, standing),
            Next::Step(Step::Withhold) => StepTaken::Withhold,
            Next::Step(Step::Declare { tenant, .. }) => StepTaken::Declare(tenant),
            Next::Step(Step::Check { .. }) => StepTaken::Check,
        };
        if let Err(why) = carry_out(&mut world, &step, fate) {
            let standing = refused(&world, why);
            return (world, standing);
        }
    }
    panic!("it does not settle: {world:?}");
}

fn truth(standing: &Standing<CustomDomainStatus>, kind: ConditionType) -> Option<Truth> {
    standing.verdicts.iter().find(|verdict| verdict.kind == kind).map(|verdict| verdict.truth)
}

proptest! {
    #[test]
    fn any_world_settles_in_a_standing_that_fits(world in any_world(), fate in any_fate()) {
        let (world, standing) = settled(world, &fate);
        let of = |kind| truth(&standing, kind);
        let is_ready = of(ConditionType::Ready) == Some(Truth::True);
        let domain = world.domain.as_ref();
        let served = domain.filter(|domain| domain.active);

        // kstatus: in progress, or failed, or neither and ready.
        let (waits, stuck) = (of(ConditionType::Reconciling), of(ConditionType::Stalled));
        prop_assert_eq!([waits, stuck].iter().flatten().count(), usize::from(!is_ready), "{:?}", standing);

        prop_assert_eq!(is_ready, of(ConditionType::Verified) == Some(Truth::True), "{:?}", standing);
        if is_ready {
            prop_assert_eq!(of(ConditionType::Accepted), Some(Truth::True));
            prop_assert_eq!(world.tenancy, Tenancy::Permitted(TENANT));
            let verified = served.map(|domain| (domain.status, domain.tenant));
            prop_assert_eq!(verified, Some((VerifyStatus::Verified, TENANT)));
        }
        if let Some(served) = served {
            prop_assert_eq!(world.tenancy, Tenancy::Permitted(TENANT), "it serves without a grant");
            prop_assert_eq!(served.tenant, TENANT, "it serves another tenant than the object's");
        }
        // Whoever is told of no domain is told nothing of another tenant's.
        let shown = standing.status.verification.is_some();
        prop_assert!(!shown || domain.is_some());
        let kinds: Vec<_> = standing.verdicts.iter().map(|verdict| verdict.kind).collect();
        for kind in &kinds {
            prop_assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 1, "one condition a type");
        }
    }
}
