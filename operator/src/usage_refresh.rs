//! Refreshes the usage in the status of Tenants whose objects were created, changed or deleted. What changes
//! over HTTP is found by the resync.

use std::sync::Arc;
use std::time::Duration;

use tempmail_store::ResourceKind;
use tokio_util::sync::CancellationToken;

use crate::reconcile::context::Context;
use crate::reconcile::trigger::ObjectKey;

/// Interval between refreshes, which bounds the writes to a Tenant however many objects change.
const INTERVAL: Duration = Duration::from_secs(10);

/// Enqueues the Tenants to refresh until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        for name in context.usage_refresh.drain() {
            context.triggers.enqueue(ResourceKind::Tenant, ObjectKey { namespace: None, name });
        }
    }
}
