//! Ends waits whose token, tenant, domain or mailbox is not what it was: one statement for
//! all of them every few seconds, however many wait. So rights end within 5 s on every
//! process, also where no hint told of the change.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tempmail_model::clock::Clock;
use tempmail_store::{OpenWait, Store};

use super::registry::Registry;

/// Time between two rounds; with the round itself it stays well under 5 s.
const ROUND: Duration = Duration::from_millis(2_500);
/// Waits a statement.
const CHUNK: usize = 2_000;

/// Looks after the open waits of `registry`, as long as there can be some.
pub(super) async fn watch(store: Store, clock: Arc<dyn Clock>, registry: Weak<Registry>) {
    loop {
        tokio::time::sleep(ROUND).await;
        let Some(registry) = registry.upgrade() else { return };
        let (numbers, waits): (Vec<u64>, Vec<OpenWait>) = registry.rights().into_iter().unzip();
        for (numbers, waits) in numbers.chunks(CHUNK).zip(waits.chunks(CHUNK)) {
            match store.list_ended_waits(waits, clock.now()).await {
                Ok(ended) => {
                    for (place, end) in ended {
                        if let Some(number) = numbers.get(place) {
                            registry.end(*number, end);
                        }
                    }
                }
                // The tailer says that Postgres is away; nothing can be read meanwhile.
                Err(error) => {
                    tracing::debug!(unavailable = error.is_unavailable(), "open waits were not checked");
                    break;
                }
            }
        }
    }
}
