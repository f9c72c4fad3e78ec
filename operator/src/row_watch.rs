//! Watches the rows of objects, and enqueues an object when its row changes by itself or over HTTP.

use std::sync::Arc;
use std::time::Duration;

use tempmail_runtime::last_success::LastSuccess;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::ChangeSnapshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reconcile::context::Context;
use crate::reconcile::work_queue::ObjectKey;

/// Interval between polls of the feed of changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a poll may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(4);
/// Without a successful poll for this long, the operator is not ready.
const STALE_AFTER: Duration = Duration::from_secs(5);
/// The component in `/readyz`.
const COMPONENT: &str = "leader";

/// Polls the feed of changes after `last` until `stop` is cancelled. Changes that are missed while Postgres is
/// unavailable are found by the resync; `readiness` reports that it is.
pub(crate) async fn run(
    mut last: ChangeSnapshot,
    context: Arc<Context>,
    readiness: Readiness,
    stop: CancellationToken,
) {
    let store = context.store.within(STATEMENT_TIMEOUT);
    let (pulse, last_poll) = (readiness.liveness().watch(COMPONENT), LastSuccess::new());
    let mut stale = false;
    while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        let _work = pulse.begin();
        let began = Instant::now();
        match store.list_changed_resources(Some(&last)).await {
            Ok((changed, snapshot)) => {
                if !last.shares_generation_with(&snapshot) {
                    // Rows, and the epoch, may be older than what was read: the next leader begins with all objects.
                    tracing::warn!("the database was restored, or a standby took over: the leader ends");
                    context.fenced.cancel();
                    return;
                }
                last = snapshot;
                last_poll.set(began);
                if std::mem::take(&mut stale) {
                    readiness.set_ready(COMPONENT);
                }
                for resource in changed {
                    let key = ObjectKey { namespace: resource.namespace, name: resource.name };
                    context.kinds.enqueue(&resource.kind, key);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the changes of rows can't be read");
                if last_poll.age() > STALE_AFTER && !std::mem::replace(&mut stale, true) {
                    readiness.set_not_ready(COMPONENT, format!("rows can't be read: {error}"));
                }
            }
        }
    }
}
