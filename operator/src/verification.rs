//! The loop that verifies the custom domains that are due, whether objects declare them or not.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::reconcile::context::Context;

/// Pause between two passes.
const PAUSE: Duration = Duration::from_secs(5);

/// Verifies domains until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    loop {
        if let Some(Err(error)) = stop.run_until_cancelled(context.verifier.check_due()).await {
            tracing::warn!(%error, "a pass over custom domains failed");
        }
        if stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
            return;
        }
    }
}
