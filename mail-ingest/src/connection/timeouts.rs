//! The time that clients may take.

use std::time::Duration;

use tempmail_runtime::config::Smtp;
use tokio::time::Instant;

/// The average rate of message data is checked from here on.
const RATE_GRACE: Duration = Duration::from_secs(30);

/// The timeouts of all connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    command: Duration,
    data: Duration,
    /// Octets per second.
    min_data_rate: u64,
}

impl Timeouts {
    /// As configured.
    pub(crate) fn from_config(config: &Smtp) -> Self {
        Self::new(config.command_seconds, config.data_seconds, config.min_data_rate)
    }

    /// Seconds between commands, seconds between two blocks of data, and the average octets per
    /// second of message data (0: no minimum).
    pub(super) fn new(command: u64, data: u64, min_data_rate: u64) -> Self {
        Self { command: Duration::from_secs(command), data: Duration::from_secs(data), min_data_rate }
    }

    /// The time between commands, also that of a TLS handshake and of a write.
    pub(super) fn command(&self) -> Duration {
        self.command
    }

    /// The time between two blocks of message data.
    pub(super) fn data(&self) -> Duration {
        self.data
    }

    /// When message data that began at `started` is too slow unless more than `octets` are received
    /// by then.
    pub(super) fn rate_deadline(&self, started: Instant, octets: u64) -> Option<Instant> {
        let seconds = octets.checked_div(self.min_data_rate)?;
        started.checked_add(RATE_GRACE.max(Duration::from_secs(seconds)))
    }
}
