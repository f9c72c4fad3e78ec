//! Checks whether the Secrets of objects were deleted or changed since their reconciliation. The operator may not list or watch
//! Secrets, so it gets the metadata of one after the other, at a rate that is set.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::reconcile::context::Context;
use crate::reconcile::seen_secret::SecretVersion;

/// A round over all Secrets takes at least this long, however few there are.
const SHORTEST_ROUND: Duration = Duration::from_secs(5);
/// Pause after a request that failed, so that an API server that is overloaded or away is not asked in vain.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// Checks all Secrets, again and again, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    let pace = Duration::from_secs(1) / u32::from(context.config.operator.secret_checks_per_second);
    while stop.run_until_cancelled(check_all(&context, pace)).await.is_some() {}
}

/// One round.
async fn check_all(context: &Context, pace: Duration) {
    let end = Instant::now() + SHORTEST_ROUND;
    for object in context.seen_secrets.objects() {
        let next = Instant::now() + pace;
        let checked = check(object, context).await;
        let result = match checked {
            Ok(false) => "unchanged",
            Ok(true) => "changed",
            Err(_) => "error",
        };
        metrics::counter!("tempmail_operator_secret_checks_total", "result" => result).increment(1);
        if let Err(error) = checked {
            tracing::warn!(%error, "Secrets can't be checked, which is retried");
            sleep_until(Instant::now() + PAUSE_AFTER_ERROR).await;
        }
        sleep_until(next).await;
    }
    sleep_until(end).await;
}

/// Has an object reconciled whose Secret is another one than its reconciliation saw, or may not be read any more. Returns
/// whether it is.
async fn check(object: Uuid, context: &Context) -> Result<bool, kube::Error> {
    let Some(seen) = context.seen_secrets.get(object) else { return Ok(false) };
    let namespace = seen.object.namespace.as_deref().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let is_same = match secrets.get_metadata_opt(&seen.name).await {
        Ok(found) => found.map(|found| SecretVersion::of(&found.metadata)) == seen.version,
        Err(kube::Error::Api(status)) if status.is_forbidden() => false,
        Err(error) => return Err(error),
    };
    if is_same || !context.seen_secrets.take(object, &seen) {
        return Ok(false);
    }
    context.triggers.enqueue(seen.kind, seen.object);
    Ok(true)
}
