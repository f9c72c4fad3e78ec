//! Carries out deletions that owners requested. The mail is invisible since then; its rows are deleted here
//! in small batches, so that incoming mail never waits long for a lock.

use std::time::Duration;

use tempmail_store::Store;
use uuid::Uuid;

/// Pause between two batches, which leaves processor and disk to others.
const PAUSE: Duration = Duration::from_millis(5);

/// Carries out every pending purge. One that fails does not keep the others from running.
pub(crate) async fn run_all(store: &Store) -> anyhow::Result<()> {
    let mut result = Ok(());
    for purge in store.list_purges().await? {
        result = result.and(run(store, purge).await);
    }
    result
}

async fn run(store: &Store, purge: Uuid) -> anyhow::Result<()> {
    loop {
        let deleted = store.purge_batch(purge).await?;
        if deleted == 0 {
            return Ok(());
        }
        metrics::counter!("tempmail_messages_purged_total").increment(deleted);
        tokio::time::sleep(PAUSE).await;
    }
}
