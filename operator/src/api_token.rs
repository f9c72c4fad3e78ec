//! API tokens: the row, inactive, with the hash; the Secret; the row active. The token itself is
//! nowhere but in the Secret, so what was interrupted begins anew with another one.

mod plan;

use jiff::Timestamp;
use kube::ResourceExt as _;
use tempmail_crds::{ApiToken, ApiTokenStatus, TokenType, annotation};
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TOKEN_NAME_MAX, TokenKind};
use tempmail_store::TokenDeclaration;

use self::plan::{Next, Step, World, plan};
use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::secret::{self, Found, Obstacle};
use crate::standing::{Reason, Standing};
use crate::{orphan, tenancy};

/// Looks and steps in one reconciliation at most.
const STEPS: usize = 6;
/// Key of the Secret.
const KEY: &str = "token";

impl Kind for ApiToken {
    kind!(ApiToken, ApiTokenStatus, namespaced);

    fn is_retained(&self) -> bool {
        false
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<ApiTokenStatus>, Failure> {
        for _ in 0..STEPS {
            let (world, found) = observe(self, context).await?;
            match plan(self, &world) {
                Next::Done(standing) => return Ok(standing),
                Next::Step(step) => match act(self, step, &world, &found, context).await {
                    Ok(()) => {}
                    Err(Obstacle::Failure(failure)) => return Err(failure),
                    Err(Obstacle::Row(refused)) => return Ok(plan::refused(self, &world, refused)),
                    Err(Obstacle::Secret(refusal)) => {
                        let (world, _) = observe(self, context).await?;
                        return Ok(refusal.standing(plan::status(self, &world)));
                    }
                },
            }
        }
        Err(Failure::Unsettled)
    }
}

/// All that decides about an object, and its Secret.
async fn observe(object: &ApiToken, context: &Context) -> Result<(World, Found), Failure> {
    let resource = noted(object, context).await?;
    let token = context.store.find_managed_token(uid(object)).await?;
    let found = secret::find(object, &secret_name(object), context).await?;
    let presented = found
        .value(KEY)
        .and_then(|value| tempmail_model::token::TokenHash::from_presented(kind(object), value));
    let held = match (&found, &token, presented) {
        (Found::Foreign, ..) => plan::Held::Conflict,
        (_, Some(token), Some(hash)) if token.hash == hash.as_bytes() => plan::Held::Token,
        _ => plan::Held::Nothing,
    };
    let world = World {
        tenancy: tenancy::resolve(object, context).await?,
        token,
        held,
        asked: object
            .annotations()
            .get(annotation::ROTATE)
            .filter(|asked| resource.rotate_handled.as_ref() != Some(asked))
            .cloned(),
        handled: resource.rotate_handled,
        now: context.clock.now(),
    };
    Ok((world, found))
}

/// Carries out one step; says what is in its way.
async fn act(
    object: &ApiToken,
    step: Step,
    world: &World,
    found: &Found,
    context: &Context,
) -> Result<(), Obstacle> {
    let (store, epoch, uid) = (&context.store, context.epoch, uid(object));
    match step {
        Step::Withdraw => store.revoke_managed_token(epoch, uid, world.now).await?,
        Step::SetExpiry(expires_at) => store.set_token_expiry(epoch, uid, expires_at).await?,
        Step::Make { tenant } => {
            orphan::succeed(object, Some(tenant), None, context).await?;
            let token = PlainToken::generate(kind(object)).map_err(|_none| Failure::Randomness)?;
            let (name, values) = (secret_name(object), [(KEY, token.expose())]);
            let takes_its_place = world.token.as_ref().is_some_and(|former| former.active);
            secret::check(object, &name, found, &values, takes_its_place, context).await?;
            let id = new_id(world.now);
            let new = TokenDeclaration {
                id,
                tenant,
                kind: kind(object),
                name: &token_name(object),
                token: &token,
                expires_at: expires_at(object),
                rotate_requested: world.asked.as_deref(),
            };
            store.declare_token(epoch, uid, new, world.now).await??;
            secret::write(object, &name, found, &values, context).await?;
            store.activate_token(epoch, uid, id).await?;
            let reason = if takes_its_place { Reason::SecretRotated } else { Reason::SecretWritten };
            context.tell(object, reason).await;
        }
    }
    Ok(())
}

fn kind(object: &ApiToken) -> TokenKind {
    match object.spec.kind {
        TokenType::Pro => TokenKind::Pro,
        TokenType::Live => TokenKind::Live,
    }
}

/// When the token expires, to the second.
fn expires_at(object: &ApiToken) -> Option<Timestamp> {
    let at = object.spec.expires_at.as_ref()?.0;
    // The database has microseconds: what is finer would never be reached.
    Some(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

fn secret_name(object: &ApiToken) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "token")
}

/// What the token is called in its tenant's list.
fn token_name(object: &ApiToken) -> String {
    let whole = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    whole.chars().take(TOKEN_NAME_MAX).collect()
}
