//! From every observed state, with restarts between any two steps, the plan ends with a status that fits.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tempmail_crds::{ApiTokenSpec, TenantRef, TokenType};

use super::*;
use crate::reconcile::driver::STEP_LIMIT;
use crate::reconcile::secret::example::is_writable;
use crate::reconcile::vanished::example_predecessor;
use crate::status::Reason;

const NOW: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + seconds).unwrap()
}

fn any_object() -> impl Strategy<Value = ApiToken> {
    (any::<bool>(), option::of(-1_i64..2)).prop_map(|(stalls, expires)| {
        ApiToken::new(
            "ci",
            ApiTokenSpec {
                tenant_ref: TenantRef { name: "acme".to_owned() },
                kind: TokenType::Live,
                secret: None,
                expires_at: expires.map(|seconds| Time(at(seconds))),
                on_secret_loss: if stalls { OnSecretLoss::Stall } else { OnSecretLoss::Rotate },
            },
        )
    })
}

fn token(id: u128, tenant: Uuid, expires_at: Option<Timestamp>) -> ManagedToken {
    ManagedToken {
        id: Uuid::from_u128(id),
        tenant,
        hint: "abcd".to_owned(),
        hash: vec![0; 32],
        active: false,
        expires_at,
    }
}

fn any_token() -> impl Strategy<Value = ManagedToken> {
    (any::<bool>(), option::of(-1_i64..2)).prop_map(|(active, expires)| ManagedToken {
        active,
        ..token(9, Uuid::from_u128(1), expires.map(at))
    })
}

/// What a process may find when it starts, so no token is issued.
fn any_observed() -> impl Strategy<Value = ObservedToken> {
    let grant = prop_oneof![
        4 => Just(Grant::Granted(Uuid::from_u128(1))),
        1 => Just(Grant::TenantNotReady),
        1 => Just(Grant::Replaced(Uuid::from_u128(2))),
        1 => Just(Grant::NotGranted { progress: Progress::Stalled, former: None }),
    ];
    let secret = select(secret::example::all_found());
    let predecessor = option::weighted(0.3, Just(example_predecessor()));
    (grant, option::of(any_token()), predecessor, secret, any::<[bool; 2]>()).prop_map(
        |(grant, token, predecessor, secret, [requested, is_current])| ObservedToken {
            grant,
            secret_is_current: is_current && token.is_some() && matches!(secret, FoundSecret::Owned(_)),
            is_issued: false,
            token,
            predecessor,
            secret,
            rotate_requested: requested.then(|| "new".to_owned()),
            rotate_handled: None,
            now: at(0),
        },
    )
}

fn carry_out(object: &ApiToken, step: TokenStep, observed: &mut ObservedToken) {
    match step {
        TokenStep::Revoke => observed.token = None,
        TokenStep::ReleasePredecessor => observed.predecessor = None,
        TokenStep::SetExpiry(expires_at) => observed.token.as_mut().unwrap().expires_at = expires_at,
        TokenStep::Declare { tenant } => {
            observed.token = Some(token(10, tenant, expires_at(object)));
            observed.rotate_handled = observed.rotate_requested.take();
            observed.secret_is_current = false;
            observed.is_issued = true;
        }
        TokenStep::WriteSecret => {
            observed.secret = FoundSecret::Owned(Box::default());
            observed.secret_is_current = true;
        }
        TokenStep::Activate(id) => {
            let token = observed.token.as_mut().unwrap();
            token.active = token.id == id;
        }
    }
}

/// What must hold before a step.
fn is_safe(object: &ApiToken, step: TokenStep, observed: &ObservedToken) -> bool {
    let is_expired = expires_at(object).is_some_and(|at| at <= observed.now);
    match step {
        TokenStep::Declare { .. } => {
            is_writable(&observed.secret)
                && !is_expired
                && (observed.token.is_some() || observed.predecessor.is_none())
        }
        TokenStep::WriteSecret => observed.is_issued && is_writable(&observed.secret),
        TokenStep::Activate(id) => {
            observed.secret_is_current && observed.token.as_ref().is_some_and(|token| token.id == id)
        }
        TokenStep::Revoke | TokenStep::ReleasePredecessor | TokenStep::SetExpiry(_) => true,
    }
}

proptest! {
    #[test]
    fn converges_from_every_state_with_restarts_between_steps(
        object in any_object(),
        mut observed in any_observed(),
        restarts in proptest::collection::vec(any::<bool>(), 0..6),
    ) {
        let mut restarts = restarts.into_iter();
        // Each restart may cost the steps that lead up to the Secret.
        let mut steps_left = STEP_LIMIT + 2 * restarts.len();
        let update = loop {
            let step = match plan(&object, &observed) {
                Plan::Done(update) => break update,
                Plan::Step(step) => step,
            };
            prop_assert!(is_safe(&object, step, &observed), "{step:?}: {observed:?}");
            prop_assert!(steps_left > 0, "{step:?} is not the last: {observed:?}");
            steps_left -= 1;
            carry_out(&object, step, &mut observed);
            if restarts.next().unwrap_or(false) {
                observed.is_issued = false;
            }
        };
        let reason = update.conditions[0].reason;
        match &observed.token {
            Some(token) if reason == Reason::Ready => {
                prop_assert!(token.active && observed.secret_is_current && observed.rotate_requested.is_none());
                prop_assert_eq!(observed.grant, Grant::Granted(token.tenant));
                prop_assert_eq!(token.expires_at, expires_at(&object));
            }
            Some(_) => prop_assert!(
                matches!(
                    reason,
                    Reason::Expired | Reason::SecretConflict | Reason::SecretLost | Reason::SecretUnreadable
                ) && matches!(observed.grant, Grant::Granted(_))
            ),
            None => prop_assert!(reason != Reason::Ready && reason != Reason::SecretLost),
        }
    }
}

fn observed(token: ManagedToken, secret_is_current: bool) -> ObservedToken {
    ObservedToken {
        grant: Grant::Granted(Uuid::from_u128(1)),
        token: Some(token),
        predecessor: None,
        secret: FoundSecret::Owned(Box::default()),
        secret_is_current,
        is_issued: false,
        rotate_requested: None,
        rotate_handled: None,
        now: at(0),
    }
}

fn object() -> ApiToken {
    let spec = ApiTokenSpec {
        tenant_ref: TenantRef { name: "acme".to_owned() },
        kind: TokenType::Live,
        secret: None,
        expires_at: None,
        on_secret_loss: OnSecretLoss::Stall,
    };
    ApiToken::new("ci", spec)
}

#[test]
fn activates_an_inactive_token_that_the_secret_holds() {
    let tenant = Uuid::from_u128(1);
    let step = plan(&object(), &observed(token(9, tenant, None), true));
    assert!(matches!(step, Plan::Step(TokenStep::Activate(id)) if id == Uuid::from_u128(9)), "{step:?}");
}

#[test]
fn declares_another_token_if_a_restart_lost_the_inactive_one() {
    let tenant = Uuid::from_u128(1);
    let step = plan(&object(), &observed(token(9, tenant, None), false));
    assert!(matches!(step, Plan::Step(TokenStep::Declare { .. })), "{step:?}");
}
