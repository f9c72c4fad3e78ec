//! Pings, and when a client that does not answer them is disconnected.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two pings. Fixed by the interface.
const INTERVAL: Duration = Duration::from_secs(30);
/// Pings that may be unanswered.
const UNANSWERED_MAX: u8 = 2;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeartbeatAction {
    /// Nothing before [`Heartbeat::next`].
    Wait,
    /// Send a ping.
    SendPing,
    /// Disconnect the client.
    TimedOut,
}

/// When the next ping is due, and how many are unanswered.
#[derive(Debug)]
pub(super) struct Heartbeat {
    next: Instant,
    unanswered: u8,
}

impl Heartbeat {
    /// The first ping is due an interval after `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now + INTERVAL, unanswered: 0 }
    }

    /// When to call [`action_at`](Self::action_at) next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// What to do at `now`; a ping that is due counts as sent.
    pub(super) fn action_at(&mut self, now: Instant) -> HeartbeatAction {
        if now < self.next {
            return HeartbeatAction::Wait;
        }
        if self.unanswered >= UNANSWERED_MAX {
            return HeartbeatAction::TimedOut;
        }
        self.unanswered += 1;
        self.next = now + INTERVAL;
        HeartbeatAction::SendPing
    }

    /// Records a pong.
    pub(super) fn on_pong(&mut self) {
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::HeartbeatAction::{SendPing, TimedOut, Wait};
    use super::*;

    #[test]
    fn sends_one_ping_per_interval_while_pongs_arrive() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        for n in 1..=5 {
            let due = start + INTERVAL * n;
            assert_eq!(heartbeat.next(), due);
            assert_eq!(heartbeat.action_at(due - Duration::from_millis(1)), Wait);
            assert_eq!(heartbeat.action_at(due), SendPing);
            assert_eq!(heartbeat.action_at(due), Wait, "one ping per interval");
            heartbeat.on_pong();
        }
    }

    #[test]
    fn times_out_after_two_unanswered_pings() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        let mut actions = |intervals: [u32; 3]| intervals.map(|n| heartbeat.action_at(start + INTERVAL * n));
        assert_eq!(actions([1, 2, 3]), [SendPing, SendPing, TimedOut]);
        let mut heartbeat = Heartbeat::new(start);
        assert_eq!([1, 2].map(|n| heartbeat.action_at(start + INTERVAL * n)), [SendPing, SendPing]);
        heartbeat.on_pong();
        let actions = [3, 4, 5].map(|n| heartbeat.action_at(start + INTERVAL * n));
        assert_eq!(actions, [SendPing, SendPing, TimedOut]);
    }
}
