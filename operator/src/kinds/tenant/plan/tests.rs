//! From every observed state the plan ends within the step limit, with a status that fits the state.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tempmail_crds::{DeletionPolicy, TenantLimits, TenantSpec, annotation};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{DeclareError, ManagedBy};

use super::*;
use crate::reconcile::driver::STEP_LIMIT;
use crate::reconcile::vanished::example_predecessor;
use crate::status::Reason;

const OWN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

/// An object, with the value of its annotation.
fn object(adopt: Option<&str>) -> Tenant {
    let spec = TenantSpec {
        suspended: false,
        retention_hours: 72,
        limits: TenantLimits::default(),
        allowed_namespaces: None,
        deletion_policy: DeletionPolicy::Retain,
        deletion_protection: false,
    };
    let mut object = Tenant::new("acme", spec);
    let annotations = adopt.map(|id| BTreeMap::from([(annotation::ADOPT_TENANT.to_owned(), id.to_owned())]));
    object.metadata.annotations = annotations;
    object
}

/// The row as the object declares it.
fn declared_row(id: Uuid) -> tempmail_store::Tenant {
    let limits = TenantLimits::default();
    let usage = |limit| LimitUsage { used: 0, limit };
    tempmail_store::Tenant {
        id,
        name: "acme".to_owned(),
        suspended: false,
        retention: RetentionClass::PRO,
        mailboxes: usage(limits.mailboxes),
        domains: usage(limits.custom_domains),
        webhooks: usage(limits.webhooks),
        tokens: usage(limits.tokens),
        mailbox_bytes: limits.mailbox_bytes,
        stored_bytes: 0,
        managed_by: ManagedBy::Kubernetes,
        created_at: Timestamp::UNIX_EPOCH,
    }
}

fn any_adopt() -> impl Strategy<Value = Option<String>> {
    select(vec![None, Some(OWN.to_string()), Some(OTHER.to_string()), Some("not-an-id".to_owned())])
}

fn any_row() -> impl Strategy<Value = tempmail_store::Tenant> {
    (any::<bool>(), 0..3_i64, 0..3_i32, any::<bool>()).prop_map(|(suspended, used, limit, is_declared)| {
        let mut row = declared_row(OWN);
        row.mailboxes.used = used;
        if !is_declared {
            row.suspended = suspended;
            row.mailboxes.limit = limit;
        }
        row
    })
}

fn any_observed() -> impl Strategy<Value = ObservedTenant> {
    let predecessor = option::weighted(0.3, Just(example_predecessor()));
    (option::of(any_row()), any::<bool>(), predecessor).prop_map(|(tenant, gives_way, predecessor)| {
        ObservedTenant { gives_way: gives_way && tenant.is_some(), tenant, predecessor }
    })
}

/// Changes the observed state by a step, or returns why the tenant can't be declared.
fn carry_out(
    step: TenantStep,
    observed: &mut ObservedTenant,
    refusal: Option<DeclareError>,
) -> Result<(), DeclareError> {
    match step {
        TenantStep::ReleasePredecessor { .. } => observed.predecessor = None,
        TenantStep::Declare { adopt } => {
            let (id, used) = match (&observed.tenant, refusal) {
                (Some(_), _) if observed.gives_way => (adopt.unwrap_or(OWN), 0),
                (Some(row), _) => (row.id, row.mailboxes.used),
                (None, Some(refusal)) => return Err(refusal),
                (None, None) => (adopt.unwrap_or(OWN), 0),
            };
            let mut row = declared_row(id);
            row.mailboxes.used = used;
            observed.tenant = Some(row);
            observed.gives_way = false;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn converges_from_every_state_to_a_status_that_fits(
        adopt in any_adopt(),
        start in any_observed(),
        refusal in option::weighted(0.3, select(vec![DeclareError::NameTaken, DeclareError::NotAdoptable])),
        repeats in proptest::collection::vec(any::<bool>(), STEP_LIMIT),
    ) {
        let object = object(adopt.as_deref());
        let mut observed = start.clone();
        let mut steps = 0;
        let update = loop {
            let step = match plan(&object, &observed) {
                Plan::Done(update) => break update,
                Plan::Step(step) => step,
            };
            if let TenantStep::Declare { .. } = step {
                prop_assert!(observed.tenant.is_some() || observed.predecessor.is_none());
            }
            if let Err(error) = carry_out(step, &mut observed, refusal) {
                break refused(&object, &Refusal::Row(error));
            }
            if repeats[steps] {
                prop_assert_eq!(carry_out(step, &mut observed, refusal), Ok(()));
            }
            steps += 1;
            prop_assert!(steps < STEP_LIMIT, "{observed:?}");
        };
        let reason = update.conditions[0].reason;
        if reason == Reason::Ready {
            let row = observed.tenant.expect("a ready tenant has a row");
            prop_assert!(is_as_declared(&object, &row));
            prop_assert_eq!(update.status.tenant_id, Some(row.id.to_string()));
            let is_kept = start.gives_way || start.tenant.is_none_or(|former| former.id == row.id);
            prop_assert!(is_kept, "the tenant was replaced");
        } else {
            prop_assert!(update.status.tenant_id.is_none());
            let is_invalid = adopt.as_deref() == Some("not-an-id");
            prop_assert_eq!(reason == Reason::InvalidSpec, is_invalid);
            prop_assert!(is_invalid || start.tenant.is_none());
        }
    }
}

/// A row that gives way to no other.
fn observed(tenant: Option<tempmail_store::Tenant>) -> ObservedTenant {
    ObservedTenant { tenant, gives_way: false, predecessor: None }
}

fn done(object: &Tenant, row: tempmail_store::Tenant) -> StatusUpdate<TenantStatus> {
    match plan(object, &observed(Some(row))) {
        Plan::Done(update) => update,
        Plan::Step(step) => panic!("{step:?} is planned"),
    }
}

#[test]
fn updates_a_row_that_differs_from_the_object_in_any_field() {
    let changes: [fn(&mut tempmail_store::Tenant); 7] = [
        |row| row.suspended = true,
        |row| row.retention = RetentionClass::try_from(1).unwrap(),
        |row| row.mailboxes.limit += 1,
        |row| row.domains.limit += 1,
        |row| row.webhooks.limit += 1,
        |row| row.tokens.limit += 1,
        |row| row.mailbox_bytes += 1,
    ];
    for change in changes {
        let mut row = declared_row(OWN);
        change(&mut row);
        let observed = observed(Some(row));
        let next = plan(&object(None), &observed);
        assert!(matches!(next, Plan::Step(TenantStep::Declare { adopt: None })), "{observed:?}: {next:?}");
    }
}

#[test]
fn reports_usage_above_a_limit() {
    let mut row = declared_row(OWN);
    row.tokens.used = i64::from(row.tokens.limit);
    let exceeded = |update: StatusUpdate<TenantStatus>| {
        let mut conditions = update.conditions.into_iter();
        conditions.find(|condition| condition.kind == ConditionType::QuotaExceeded)
    };
    assert_eq!(exceeded(done(&object(None), row.clone())), None);
    row.tokens.used += 1;
    let message = exceeded(done(&object(None), row)).expect("the limit is exceeded").message;
    assert!(message.contains("21 of 20 tokens.") && !message.contains("webhooks"), "{message}");
}

#[test]
fn ignores_an_adoption_if_the_object_has_another_tenant() {
    let ignored = done(&object(Some(&OTHER.to_string())), declared_row(OWN));
    assert!(ignored.conditions[0].message.contains("is ignored"), "{ignored:?}");
    let own = done(&object(Some(&OWN.to_string())), declared_row(OWN));
    assert_eq!(own.conditions[0].message, "Resource is ready.");
}

/// A requirement that only definitions of another version let pass.
fn invalid_selector() -> LabelSelector {
    let requirement =
        LabelSelectorRequirement { key: "team".to_owned(), operator: "NotIn".to_owned(), values: None };
    LabelSelector { match_labels: None, match_expressions: Some(vec![requirement]) }
}

#[test]
fn suspends_a_tenant_whose_selector_is_invalid_and_creates_none() {
    let mut object = object(None);
    object.spec.allowed_namespaces = Some(invalid_selector());
    object.spec.suspended = true;
    let missing = observed(None);
    let Plan::Done(update) = plan(&object, &missing) else { panic!("it creates a tenant") };
    assert_eq!(update.conditions[0].reason, Reason::InvalidSpec);

    let mut row = declared_row(OWN);
    let active = observed(Some(row.clone()));
    assert!(matches!(plan(&object, &active), Plan::Step(TenantStep::Declare { adopt: None })));
    row.suspended = true;
    let suspended = observed(Some(row));
    let Plan::Done(update) = plan(&object, &suspended) else { panic!("it declares the same again") };
    assert_eq!(update.status.tenant_id, Some(OWN.to_string()));
    assert_eq!(update.conditions[0].reason, Reason::InvalidSpec);
    let message = &update.conditions[0].message;
    assert!(message.contains("matchExpressions[0] has the operator NotIn and no values"), "{message}");
}
