//! Watches the rows of objects, and enqueues an object when its row changes by itself or over HTTP.

use std::sync::Arc;
use std::time::Duration;

use tempmail_store::ChangeSnapshot;
use tokio_util::sync::CancellationToken;

use crate::reconcile::context::Context;
use crate::reconcile::trigger::ObjectKey;

/// Interval between polls of the feed of changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Polls the feed of changes after `last` until `stop` is cancelled. Changes that are missed while Postgres is
/// unavailable are found by the resync.
pub(crate) async fn run(mut last: ChangeSnapshot, context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        match context.store.list_changed_resources(Some(&last)).await {
            Ok((changed, snapshot)) => {
                last = snapshot;
                for resource in changed {
                    let key = ObjectKey { namespace: resource.namespace, name: resource.name };
                    context.triggers.enqueue(resource.kind, key);
                }
            }
            Err(error) => tracing::warn!(%error, "the changes of rows can't be read"),
        }
    }
}
