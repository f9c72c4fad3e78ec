//! Pings, and what becomes of a client that does not answer them.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two pings. Fixed by the interface.
pub(super) const PERIOD: Duration = Duration::from_secs(30);
/// Pings without a pong that are waited for.
const UNANSWERED_MAX: u8 = 2;

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing before [`Heartbeat::next`].
    Rest,
    /// Send a ping.
    Ping,
    /// The client has gone.
    Dead,
}

/// When the next ping is due, and how many have no pong.
#[derive(Debug)]
pub(super) struct Heartbeat {
    next: Instant,
    unanswered: u8,
}

impl Heartbeat {
    /// The first ping is due a period after `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now + PERIOD, unanswered: 0 }
    }

    /// When it has to be looked at again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// What is due at `now`.
    pub(super) fn beat(&mut self, now: Instant) -> Beat {
        if now < self.next {
            return Beat::Rest;
        }
        if self.unanswered >= UNANSWERED_MAX {
            return Beat::Dead;
        }
        self.unanswered += 1;
        self.next = now + PERIOD;
        Beat::Ping
    }

    /// A pong came.
    pub(super) fn answered(&mut self) {
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_period_has_its_ping_as_long_as_there_are_pongs() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        for n in 1..=5 {
            let due = start + PERIOD * n;
            assert_eq!(heartbeat.next(), due);
            assert_eq!(heartbeat.beat(due - Duration::from_millis(1)), Beat::Rest);
            assert_eq!(heartbeat.beat(due), Beat::Ping);
            assert_eq!(heartbeat.beat(due), Beat::Rest, "one ping a period");
            heartbeat.answered();
        }
    }

    #[test]
    fn two_pings_without_a_pong_are_waited_for_and_a_third_is_not_sent() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        let mut beats = |periods: [u32; 3]| periods.map(|n| heartbeat.beat(start + PERIOD * n));
        assert_eq!(beats([1, 2, 3]), [Beat::Ping, Beat::Ping, Beat::Dead]);
        let mut heartbeat = Heartbeat::new(start);
        assert_eq!([1, 2].map(|n| heartbeat.beat(start + PERIOD * n)), [Beat::Ping, Beat::Ping]);
        heartbeat.answered();
        assert_eq!(
            [3, 4, 5].map(|n| heartbeat.beat(start + PERIOD * n)),
            [Beat::Ping, Beat::Ping, Beat::Dead]
        );
    }
}
