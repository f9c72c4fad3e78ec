//! Mails whose senders wait for an answer to their data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, interval};

/// Time between two measurements.
const MEASURE_PERIOD: Duration = Duration::from_secs(1);

/// The mails of a process without an answer. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Unanswered(Arc<Mutex<UnansweredMails>>);

#[derive(Debug, Default)]
struct UnansweredMails {
    last_number: u64,
    /// When the data of each mail was received; the oldest first.
    since: BTreeMap<u64, Instant>,
}

/// A mail without an answer, until it is dropped.
#[derive(Debug)]
pub(super) struct UnansweredMail {
    number: u64,
    of: Unanswered,
}

impl Unanswered {
    /// The data of a mail was received.
    pub(super) fn begin(&self) -> UnansweredMail {
        let mut waiting = self.lock();
        waiting.last_number += 1;
        let number = waiting.last_number;
        waiting.since.insert(number, Instant::now());
        UnansweredMail { number, of: self.clone() }
    }

    /// The time since the data of the oldest mail was received; zero if there is none.
    fn age(&self) -> Duration {
        self.lock().since.values().next().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Sets the gauge every second, until the task is aborted.
    pub(super) async fn measure(self) {
        let gauge = metrics::gauge!("tempmail_ingest_oldest_unanswered_seconds");
        let mut period = interval(MEASURE_PERIOD);
        loop {
            period.tick().await;
            gauge.set(self.age().as_secs_f64());
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnansweredMails> {
        // Each change is a single insert or remove, so the map is valid after a panic too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnansweredMail {
    fn drop(&mut self) {
        self.of.lock().since.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn measures_the_oldest_mail() {
        let unanswered = Unanswered::default();
        assert_eq!(unanswered.age(), Duration::ZERO);
        let first = unanswered.begin();
        tokio::time::advance(Duration::from_secs(3)).await;
        let _second = unanswered.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(unanswered.age(), Duration::from_secs(4));
        drop(first);
        assert_eq!(unanswered.age(), Duration::from_secs(1));
    }
}
