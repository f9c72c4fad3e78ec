//! What happens to rows by itself or over HTTP is told to the controllers, which show it.

use std::sync::Arc;
use std::time::Duration;

use tempmail_store::ChangeSnapshot;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::trigger::ObjectKey;

/// Time between two looks at the feed of changes.
const LOOK: Duration = Duration::from_secs(1);
/// Time between the end of a pass over the domains that are due and the next one.
const VERIFY: Duration = Duration::from_secs(5);

/// Follows the feed of changes from `last` on. What it misses while Postgres is away shows at the next
/// look in turn.
pub(crate) async fn follow_rows(mut last: ChangeSnapshot, context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
        match context.store.list_changed_resources(Some(&last)).await {
            Ok((changed, snapshot)) => {
                last = snapshot;
                for resource in changed {
                    let key = ObjectKey { namespace: resource.namespace, name: resource.name };
                    context.triggers.pull(resource.kind, key);
                }
            }
            Err(error) => tracing::warn!(%error, "the changes of rows can't be read"),
        }
    }
}

/// Looks at the records of domains that are due, whoever made them.
pub(crate) async fn verify_domains(context: Arc<Context>, stop: CancellationToken) {
    loop {
        if let Some(Err(error)) = stop.run_until_cancelled(context.verifier.check_due()).await {
            tracing::warn!(%error, "a pass over custom domains failed");
        }
        if stop.run_until_cancelled(tokio::time::sleep(VERIFY)).await.is_none() {
            return;
        }
    }
}
