//! Deletions that owners asked for: invisible since they asked, carried out here in small
//! batches, so that mail in flight never waits long for a lock.

use std::time::Duration;

use uuid::Uuid;

use crate::Worker;

/// Between two batches processor and disk are left to others.
const PAUSE: Duration = Duration::from_millis(5);

impl Worker {
    /// Carries out every purge that is waiting. One that fails does not keep the others.
    pub(crate) async fn carry_out_purges(&self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for purge in self.store.list_purges().await? {
            result = result.and(self.carry_out(purge).await);
        }
        result
    }

    async fn carry_out(&self, purge: Uuid) -> anyhow::Result<()> {
        loop {
            let deleted = self.store.purge_batch(purge).await?;
            if deleted == 0 {
                return Ok(());
            }
            metrics::counter!("tempmail_messages_purged_total").increment(deleted);
            tokio::time::sleep(PAUSE).await;
        }
    }
}
