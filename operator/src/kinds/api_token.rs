//! API tokens. A token is declared inactive with its hash, then written to its Secret, then activated. It is
//! stored nowhere but in the Secret, so a token that was lost in between is replaced by a new one.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{ApiToken, ApiTokenStatus, TokenType, annotation};
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TOKEN_NAME_MAX, TokenHash, TokenKind};
use tempmail_store::{LimitUsage, ManagedToken, Resource, Tenant, TokenDeclaration};
use uuid::Uuid;

use self::plan::{ObservedToken, TokenStep, expires_at, secret_name};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseTerms};
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::FoundSecret;
use crate::reconcile::secret::Issued;
use crate::reconcile::vanished::{find_predecessor, release_predecessor};
use crate::reconcile::{grant, secret};
use crate::status::StatusUpdate;

/// Key of the token in the Secret.
const KEY: &str = "token";

impl Kind for ApiToken {
    const PLURAL: &'static str = "tokens";

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn usage(tenant: &Tenant) -> Option<LimitUsage> {
        Some(tenant.tokens)
    }
}

impl Reconcile for ApiToken {
    type Observed = ObservedToken;
    type Step = TokenStep;

    async fn observe(
        &self,
        resource: Resource,
        issued: &Issued,
        context: &Context,
    ) -> Result<ObservedToken, ReconcileError> {
        let token = context.store.find_managed_token(uid(self)).await?;
        let secret = secret::find(self, &secret_name(self), context).await?;
        let grant = grant::find(self, &resource, context).await?;
        let predecessor = match grant.tenant(self) {
            Ok(tenant) if token.is_none() => find_predecessor(self, Some(tenant), context).await?,
            _ => None,
        };
        let requested = self.annotations().get(annotation::ROTATE);
        let handled = resource.rotate_handled;
        Ok(ObservedToken {
            grant,
            secret_is_current: token.as_ref().is_some_and(|token| holds(self, &secret, token)),
            is_issued: token.as_ref().is_some_and(|token| issued.value(&token.hash).is_some()),
            token,
            predecessor,
            secret,
            rotate_requested: requested.filter(|requested| handled.as_ref() != Some(requested)).cloned(),
            rotate_handled: handled,
            now: context.clock.now(),
        })
    }

    fn plan(&self, observed: &ObservedToken) -> Plan<TokenStep, ApiTokenStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: TokenStep,
        observed: &ObservedToken,
        issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        let (store, epoch, uid) = (&context.store, context.epoch, uid(self));
        match step {
            TokenStep::Revoke => store.revoke_managed_token(epoch, uid, observed.now).await?,
            TokenStep::ReleasePredecessor => {
                release_predecessor(self, observed.predecessor.as_ref(), None, context).await?;
            }
            TokenStep::SetExpiry(expires_at) => store.set_token_expiry(epoch, uid, expires_at).await?,
            TokenStep::Declare { tenant } => declare(self, tenant, observed, issued, context).await?,
            TokenStep::WriteSecret => write_secret(self, observed, issued, context).await?,
            TokenStep::Activate(id) => store.activate_token(epoch, uid, id).await?,
        }
        Ok(())
    }

    fn refused(&self, observed: &ObservedToken, refusal: Refusal) -> StatusUpdate<ApiTokenStatus> {
        plan::refused(self, observed, &refusal)
    }

    async fn release(uid: Uuid, _terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        context.store.release_token(context.epoch, uid, context.clock.now()).await?;
        context.seen_secrets.forget(uid);
        Ok(Release::Released)
    }
}

/// Declares a new token, inactive, in place of the former one.
async fn declare(
    object: &ApiToken,
    tenant: Uuid,
    observed: &ObservedToken,
    issued: &mut Issued,
    context: &Context,
) -> Result<(), StepError> {
    let token = PlainToken::generate(kind(object)).map_err(|_no_randomness| ReconcileError::Randomness)?;
    let replaces = observed.token.as_ref().is_some_and(|former| former.active);
    let (name, values) = (secret_name(object), [(KEY, token.expose())]);
    secret::check(object, &name, &observed.secret, &values, replaces, context).await?;
    let declaration = TokenDeclaration {
        id: new_id(observed.now),
        tenant,
        kind: kind(object),
        name: &token_name(object),
        token: &token,
        expires_at: expires_at(object),
        rotate_requested: observed.rotate_requested.as_deref(),
    };
    context.store.declare_token(context.epoch, uid(object), declaration, observed.now).await??;
    issued.set(token.expose(), token.hash().as_bytes(), replaces);
    Ok(())
}

/// Writes the token that this reconciliation issued.
async fn write_secret(
    object: &ApiToken,
    observed: &ObservedToken,
    issued: &Issued,
    context: &Context,
) -> Result<(), StepError> {
    let token = observed.token.as_ref().and_then(|token| issued.value(&token.hash));
    let values = [(KEY, token.ok_or(ReconcileError::Stale)?)];
    let name = secret_name(object);
    secret::write(object, &name, &observed.secret, &values, context).await?;
    secret::publish_written(object, &name, issued.replaces(), context).await;
    Ok(())
}

/// Whether the Secret holds the row's token.
fn holds(object: &ApiToken, secret: &FoundSecret, token: &ManagedToken) -> bool {
    let hash = secret.value(KEY).and_then(|value| TokenHash::from_presented(kind(object), value));
    hash.is_some_and(|hash| token.hash == hash.as_bytes())
}

fn kind(object: &ApiToken) -> TokenKind {
    match object.spec.kind {
        TokenType::Pro => TokenKind::Pro,
        TokenType::Live => TokenKind::Live,
    }
}

/// The token's name in the list of its tenant.
fn token_name(object: &ApiToken) -> String {
    let name = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    name.chars().take(TOKEN_NAME_MAX).collect()
}
