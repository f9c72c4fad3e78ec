//! Carries out deletions that owners requested. The mail is invisible since then; its rows are deleted here
//! in small batches, so that incoming mail never waits long for a lock.

use std::time::Duration;

use tempmail_store::Store;
use uuid::Uuid;

/// Pause between two batches, which leaves processor and disk to others.
const PAUSE: Duration = Duration::from_millis(5);

/// Carries out every pending purge, a batch of each in turn, so that none waits for the end of a large one. One that
/// fails does not keep the others from running.
pub(crate) async fn run_all(store: &Store) -> anyhow::Result<()> {
    let mut result = Ok(());
    let mut pending = store.list_purges().await?;
    while !pending.is_empty() {
        let mut incomplete = Vec::with_capacity(pending.len());
        for purge in pending {
            match run_batch(store, purge).await {
                Ok(true) => incomplete.push(purge),
                Ok(false) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        pending = incomplete;
    }
    result
}

/// Deletes one batch; whether there may be more of it.
async fn run_batch(store: &Store, purge: Uuid) -> anyhow::Result<bool> {
    let deleted = store.purge_batch(purge).await?;
    if deleted > 0 {
        metrics::counter!("tempmail_messages_purged_total").increment(deleted);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(deleted > 0)
}
