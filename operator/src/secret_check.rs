//! Checks whether the Secrets of objects were deleted or changed since they were looked at. The operator may not list or watch
//! Secrets, so it gets the metadata of each that no reconciliation has read for a while.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::reconcile::context::Context;
use crate::reconcile::seen_secret::SecretVersion;

/// Interval at which the Secrets that are due are checked.
const TICK: Duration = Duration::from_secs(1);
/// Pause after a request that failed, so that an API server that is overloaded or away is not asked in vain.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// Checks Secrets as they become due, one after the other, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(check_due(&context)).await.is_some() {
        if stop.run_until_cancelled(sleep(TICK)).await.is_none() {
            return;
        }
    }
}

async fn check_due(context: &Context) {
    for object in context.seen_secrets.due(context.clock.now()) {
        let checked = check(object, context).await;
        let result = match checked {
            Ok(false) => "unchanged",
            Ok(true) => "changed",
            Err(_) => "error",
        };
        metrics::counter!("tempmail_operator_secret_checks_total", "result" => result).increment(1);
        if let Err(error) = checked {
            tracing::warn!(%error, "Secrets can't be checked, which is retried");
            sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

/// Has an object reconciled whose Secret is another one than was seen, or may not be read any more. Returns whether it is.
async fn check(object: Uuid, context: &Context) -> Result<bool, kube::Error> {
    let Some(seen) = context.seen_secrets.get(object) else { return Ok(false) };
    let namespace = seen.object.namespace.as_deref().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let is_same = match secrets.get_metadata_opt(&seen.name).await {
        Ok(found) => found.map(|found| SecretVersion::of(&found.metadata)) == seen.version,
        Err(kube::Error::Api(status)) if status.is_forbidden() => false,
        Err(error) => return Err(error),
    };
    if is_same {
        context.seen_secrets.postpone(object, context.clock.now());
        return Ok(false);
    }
    if !context.seen_secrets.take(object, &seen) {
        return Ok(false);
    }
    context.triggers.enqueue(seen.kind, seen.object);
    Ok(true)
}
