//! The time that clients may take.

use std::time::Duration;

use tempmail_runtime::config::Smtp;

/// Time in which message data may begin slowly.
const RATE_GRACE: Duration = Duration::from_secs(30);

/// The timeouts of all connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    command: Duration,
    data: Duration,
    /// Octets per second.
    min_data_rate: u64,
    transaction: Duration,
    session: Duration,
}

impl Timeouts {
    /// As configured.
    pub(crate) fn from_config(config: &Smtp) -> Self {
        Self {
            transaction: Duration::from_secs(config.transaction_seconds),
            session: Duration::from_secs(config.session_seconds),
            ..Self::new(config.command_seconds, config.data_seconds, config.min_data_rate)
        }
    }

    /// Seconds between commands, seconds between two blocks of data, and the least octets per second of message
    /// data (0: no minimum). Transactions and sessions take as long as they like.
    pub(super) fn new(command: u64, data: u64, min_data_rate: u64) -> Self {
        Self {
            command: Duration::from_secs(command),
            data: Duration::from_secs(data),
            min_data_rate,
            transaction: Duration::MAX,
            session: Duration::MAX,
        }
    }

    /// The time between commands, also that of a TLS handshake and of a write.
    pub(super) fn command(&self) -> Duration {
        self.command
    }

    /// The time between two blocks of message data, and over which their rate is judged.
    pub(super) fn data(&self) -> Duration {
        self.data
    }

    /// The time from MAIL to the end of the message.
    pub(super) fn transaction(&self) -> Duration {
        self.transaction
    }

    /// The time of a session, after which it ends with its open transaction.
    pub(super) fn session(&self) -> Duration {
        self.session
    }

    /// The time that message data has at its beginning; `None` if there is no minimum rate.
    pub(super) fn rate_grace(&self) -> Option<Duration> {
        (self.min_data_rate > 0).then_some(RATE_GRACE)
    }

    /// The time that so many octets take at the minimum rate.
    pub(super) fn time_of(&self, octets: u64) -> Duration {
        Duration::from_millis(octets.saturating_mul(1_000).checked_div(self.min_data_rate).unwrap_or(0))
    }
}
