//! Rows of objects that vanished although nobody let go of their rows: a finalizer was taken away by
//! hand, or the cluster was restored from a copy. They are told of at once, and kept for a day, or until
//! somebody makes the object again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_store::{Resource, ResourceKind, SystemDomainRemoval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::identity;
use crate::kind::Kind;

/// Time between two looks; the first is when the objects are known.
const LOOK: Duration = Duration::from_secs(600);
/// An object that is missing for this long will not be back.
const GIVEN_UP: SignedDuration = SignedDuration::from_hours(24);

/// Lets go of the row of an object that is gone, or is being deleted; `false` where that can't be done
/// yet.
pub(crate) async fn release(
    kind: ResourceKind,
    uid: Uuid,
    retained: bool,
    context: &Context,
) -> Result<bool, Failure> {
    let (store, epoch, now) = (&context.store, context.epoch, context.clock.now());
    let hold_days = context.config.limits.address_hold_days;
    match kind {
        ResourceKind::Tenant => store.release_tenant(epoch, uid, retained, now, hold_days).await?,
        ResourceKind::SystemDomain => {
            let removal = store.release_system_domain(epoch, uid, now).await?;
            return Ok(matches!(removal, SystemDomainRemoval::Removed | SystemDomainRemoval::NotFound));
        }
        ResourceKind::CustomDomain => store.release_custom_domain(epoch, uid, retained, now).await?,
        ResourceKind::Webhook => store.release_webhook(epoch, uid).await?,
        ResourceKind::ApiToken => store.release_token(epoch, uid, now).await?,
        ResourceKind::Mailbox => {
            store.release_mailbox(epoch, uid, retained, now, hold_days).await?;
            context.fits.forget(uid);
        }
    }
    Ok(true)
}

/// Lets go of the rows of objects that vanished and had the kind, namespace and name of this one, and its
/// `tenant`: nobody else can have made it again, and they will not be back. It is done as they said last;
/// a row that the object asks to `adopt` is kept.
pub(crate) async fn succeed<K: Kind>(
    object: &K,
    tenant: Option<Uuid>,
    adopt: Option<Uuid>,
    context: &Context,
) -> Result<(), Failure> {
    let predecessors = context.store.list_predecessors(context.cluster, &identity(object), tenant).await?;
    if predecessors.is_empty() {
        return Ok(());
    }
    // What was read a while ago may itself be what is gone.
    let current = object.api(&context.client).get_metadata_opt(&object.name_any()).await?;
    if current.is_none_or(|current| current.uid() != object.uid()) {
        return Err(Failure::Stale);
    }
    for Resource { identity, row_id, .. } in predecessors {
        let retained = identity.retained || (row_id.is_some() && row_id == adopt);
        let (kind, uid) = (identity.kind.as_str(), identity.uid);
        if release(identity.kind, uid, retained, context).await? {
            tracing::warn!(kind, %uid, retained, "an object was made again after it vanished: its row was let go of");
        }
    }
    Ok(())
}

/// Looks for rows of a kind whose objects are gone, once these are known, until `stop` is cancelled.
pub(crate) async fn follow<K: Kind>(
    objects: reflector::Store<DeserializeGuard<K>>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let Some(()) = stop.run_until_cancelled(context.known[&K::KIND].cancelled()).await else { return };
    loop {
        match stop.run_until_cancelled(pass(&objects, &context)).await {
            Some(Err(Failure::Fenced)) => context.fenced.cancel(),
            Some(Err(error)) => {
                tracing::warn!(kind = K::KIND.as_str(), %error, "a look for orphans failed");
            }
            Some(Ok(())) | None => {}
        }
        if stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return;
        }
    }
}

/// Compares the rows of a kind with the objects there are.
async fn pass<K: Kind>(
    objects: &reflector::Store<DeserializeGuard<K>>,
    context: &Context,
) -> Result<(), Failure> {
    // In this order: an object is known here before it has a row.
    let noted = context.store.list_resources(context.cluster, K::KIND).await?;
    let present: HashSet<Uuid> = objects.state().iter().map(|object| uid(&**object)).collect();
    let mut orphans: u32 = 0;
    for resource in noted {
        if present.contains(&resource.identity.uid) {
            if resource.missing_since.is_some() {
                context.store.record_missing_since(context.epoch, resource.identity.uid, None).await?;
            }
        } else if !is_released(&resource, context).await? {
            orphans = orphans.saturating_add(1);
        }
    }
    metrics::gauge!("tempmail_operator_orphans", "kind" => K::KIND.as_str()).set(orphans);
    Ok(())
}

/// Notes that an object is missing; or lets go of its row, as the object said last, once it is missing
/// for long.
async fn is_released(resource: &Resource, context: &Context) -> Result<bool, Failure> {
    let (now, identity) = (context.clock.now(), &resource.identity);
    let (kind, uid) = (identity.kind.as_str(), identity.uid);
    match resource.missing_since {
        None => {
            context.store.record_missing_since(context.epoch, uid, Some(now)).await?;
            tracing::warn!(kind, %uid, "an object is gone, and nobody let go of its row: it is kept for a day");
        }
        Some(since) if now.duration_since(since) >= GIVEN_UP => {
            match release(identity.kind, uid, identity.retained, context).await {
                Ok(true) => {
                    let retained = identity.retained;
                    tracing::warn!(kind, %uid, retained, "an object is gone for a day: its row was let go of");
                    return Ok(true);
                }
                Ok(false) => tracing::warn!(kind, %uid, "a row can't be let go of yet"),
                Err(Failure::Fenced) => return Err(Failure::Fenced),
                Err(error) => tracing::warn!(kind, %uid, %error, "a row can't be let go of yet"),
            }
        }
        Some(_) => {}
    }
    Ok(false)
}
