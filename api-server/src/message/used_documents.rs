//! Which addresses of documents were used: each works once.

use std::time::Duration;

use tempmail_bus::{FailureLimit, RateKey, SharedBus};

/// How long it is remembered that an address was used: longer than it works (60 s), since clocks differ.
const REMEMBERED: Duration = Duration::from_secs(180);

/// Addresses of documents that were used, in all processes; without Redis in this one.
pub(crate) struct UsedDocuments {
    bus: SharedBus,
    limit: FailureLimit,
}

impl UsedDocuments {
    pub(crate) fn new(bus: SharedBus) -> Self {
        Self { bus, limit: FailureLimit::new("document", 1, REMEMBERED) }
    }

    /// Whether an address was not used before; from now on it is.
    pub(crate) async fn record(&self, address: &str) -> bool {
        let key = RateKey::from_parts(&[address.as_bytes()]);
        self.bus.begin_attempt(&self.limit, key).await.is_ok()
    }
}
