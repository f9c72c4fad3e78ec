//! What is to be done for a token, and how it stands: decided without I/O.

use jiff::{SignedDuration, Timestamp};
use tempmail_crds::{ApiToken, ApiTokenStatus, OnSecretLoss};
use tempmail_store::{DeclareError, ManagedToken};
use uuid::Uuid;

use super::{expires_at, secret_name};
use crate::standing::{Outlook, Reason, Standing};
use crate::tenancy::Tenancy;

/// How long after its end a token is looked at, so that it has ended.
const PAST: SignedDuration = SignedDuration::from_secs(1);

/// What the Secret holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The row's token.
    Token,
    /// Nothing, or something else; or there is no Secret.
    Nothing,
    /// It is somebody else's.
    Conflict,
}

/// All that decides about an object.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub tenancy: Tenancy,
    /// The object's row.
    pub token: Option<ManagedToken>,
    pub held: Held,
    /// A new token that the object asks for, and that was not made yet.
    pub asked: Option<String>,
    /// The one that was made last.
    pub handled: Option<String>,
    pub now: Timestamp,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    Step(Step),
    Done(Standing<ApiTokenStatus>),
}

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The object is not accepted any more: its token ends.
    Withdraw,
    /// The object says something else of the token's end.
    SetExpiry(Option<Timestamp>),
    /// A token is made, its Secret written, and it is let in.
    Make { tenant: Uuid },
}

/// Decides what comes next.
pub(super) fn plan(object: &ApiToken, world: &World) -> Next {
    let tenant = match world.tenancy.permitted() {
        Ok(tenant) => tenant,
        Err(_) if world.token.is_some() => return Next::Step(Step::Withdraw),
        Err((reason, outlook)) => {
            return Next::Done(Standing::refused(status(object, world), reason, outlook));
        }
    };
    let (token, expires_at) = (world.token.as_ref(), expires_at(object));
    let token = token.filter(|token| token.tenant == tenant);
    if token.is_some_and(|token| token.expires_at != expires_at) {
        return Next::Step(Step::SetExpiry(expires_at));
    }
    // None is made that would be refused at once, also where its row is long forgotten.
    if expires_at.is_some_and(|at| at <= world.now) {
        return Next::Done(Standing::not_ready(status(object, world), Reason::Expired, Outlook::Stuck));
    }
    if world.held == Held::Conflict {
        return Next::Done(Standing::refused(status(object, world), Reason::SecretConflict, Outlook::Stuck));
    }
    // The value of an inactive one is not known any more.
    if world.asked.is_some() || !token.is_some_and(|token| token.active) {
        return Next::Step(Step::Make { tenant });
    }
    if world.held == Held::Nothing {
        return match object.spec.on_secret_loss {
            OnSecretLoss::Rotate => Next::Step(Step::Make { tenant }),
            OnSecretLoss::Stall => {
                Next::Done(Standing::not_ready(status(object, world), Reason::SecretLost, Outlook::Stuck))
            }
        };
    }
    let mut standing = Standing::ready(status(object, world));
    standing.again = expires_at.and_then(|at| (at.duration_since(world.now) + PAST).try_into().ok());
    Next::Done(standing)
}

/// How an object stands that can have no token.
pub(super) fn refused(object: &ApiToken, world: &World, refused: DeclareError) -> Standing<ApiTokenStatus> {
    let reason = match refused {
        DeclareError::TenantDisabled => Reason::TenantSuspended,
        _ => Reason::QuotaExceeded,
    };
    Standing::refused(status(object, world), reason, Outlook::Stuck)
}

/// The status, its conditions aside. A token that is not active is nobody's.
pub(super) fn status(object: &ApiToken, world: &World) -> ApiTokenStatus {
    let token = world.token.as_ref().filter(|token| token.active);
    ApiTokenStatus {
        token_id: token.map(|token| token.id.to_string()),
        hint: token.map(|token| token.hint.clone()),
        secret_name: token.map(|_| secret_name(object)),
        last_handled_rotate_at: world.handled.clone(),
        ..ApiTokenStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::option;
    use proptest::prelude::*;
    use tempmail_crds::{ApiTokenSpec, TenantRef, TokenType};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(NOW + seconds).unwrap()
    }

    fn object() -> impl Strategy<Value = ApiToken> {
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

    fn token() -> impl Strategy<Value = ManagedToken> {
        (1..3_u128, any::<bool>(), option::of(-1_i64..2)).prop_map(|(tenant, active, expires)| ManagedToken {
            id: Uuid::from_u128(9),
            tenant: Uuid::from_u128(tenant),
            hint: "abcd".to_owned(),
            hash: vec![0; 32],
            active,
            expires_at: expires.map(at),
        })
    }

    fn world() -> impl Strategy<Value = World> {
        let tenancy = prop_oneof![
            4 => Just(Tenancy::Permitted(Uuid::from_u128(1))),
            1 => Just(Tenancy::NotReady),
            1 => Just(Tenancy::NotPermitted(Outlook::Stuck)),
        ];
        let held = prop_oneof![Just(Held::Token), Just(Held::Nothing), Just(Held::Conflict)];
        (tenancy, option::of(token()), held, any::<bool>()).prop_map(|(tenancy, token, held, asked)| World {
            tenancy,
            held: if token.is_none() && held == Held::Token { Held::Nothing } else { held },
            token,
            asked: asked.then(|| "new".to_owned()),
            handled: None,
            now: at(0),
        })
    }

    /// How far a step came.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Came {
        Row,
        Secret,
        End,
    }

    fn carry_out(object: &ApiToken, step: Step, came: Came, world: &mut World) {
        match step {
            Step::Withdraw => world.token = None,
            Step::SetExpiry(expires_at) => world.token.as_mut().unwrap().expires_at = expires_at,
            Step::Make { tenant } => {
                world.token = Some(ManagedToken {
                    id: Uuid::from_u128(10),
                    tenant,
                    hint: "abcd".to_owned(),
                    hash: vec![1; 32],
                    active: came == Came::End,
                    expires_at: expires_at(object),
                });
                world.handled = world.asked.take();
                world.held = if came == Came::Row { Held::Nothing } else { Held::Token };
            }
        }
    }

    proptest! {
        #[test]
        fn from_everywhere_it_comes_to_an_end_whatever_is_interrupted(
            object in object(),
            mut world in world(),
            interrupted in proptest::collection::vec(prop_oneof![Just(Came::Row), Just(Came::Secret)], 0..4),
        ) {
            let mut came = interrupted.iter().copied();
            let mut left = interrupted.len() + 3;
            let standing = loop {
                match plan(&object, &world) {
                    Next::Done(standing) => break standing,
                    Next::Step(step) => {
                        prop_assert!(left > 0, "{step:?} is not the last: {world:?}");
                        left -= 1;
                        let is_due = expires_at(&object).is_some_and(|at| at <= world.now);
                        let is_made = matches!(step, Step::Make { .. });
                        prop_assert!(!is_made || (world.held != Held::Conflict && !is_due), "{world:?}");
                        carry_out(&object, step, came.next().unwrap_or(Came::End), &mut world);
                    }
                }
            };
            let reason = standing.verdicts[0].reason;
            match &world.token {
                Some(token) if reason == Reason::Ready => {
                    prop_assert!(token.active && world.held == Held::Token && world.asked.is_none());
                    prop_assert_eq!(world.tenancy, Tenancy::Permitted(token.tenant));
                    prop_assert_eq!(token.expires_at, expires_at(&object));
                }
                Some(_) => prop_assert!(
                    matches!(reason, Reason::Expired | Reason::SecretConflict | Reason::SecretLost)
                        && matches!(world.tenancy, Tenancy::Permitted(_))
                ),
                None => prop_assert!(reason != Reason::Ready && reason != Reason::SecretLost),
            }
        }
    }
}
