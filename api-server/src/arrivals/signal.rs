//! The pending notifications of one subscriber: a few bits, no queue.

use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;

const DUE: u8 = 1;
const RECHECK: u8 = 2;
const DRAIN: u8 = 4;

/// No arrival is pending.
const NO_ARRIVAL: i64 = i64::MAX;

/// One reason to notify a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notification {
    /// A message at this position of the stream arrived under one of the subscriber's topics; 0: it is
    /// unknown what arrived.
    Arrived(i64),
    /// The scheduled time has come.
    Due,
    /// Something that the right to read depends on changed or expired.
    Recheck,
    /// The process drains.
    Drain,
}

/// What a subscriber was notified of since it last waited; several reasons may coincide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Notifications {
    /// The first arrival, by its position in the stream; 0 where it is unknown.
    pub(crate) arrived: Option<i64>,
    /// The scheduled time has come.
    pub(crate) due: bool,
    /// The right to read may have changed or expired: check it again.
    pub(crate) recheck: bool,
    /// The process drains: have the client reconnect.
    pub(crate) drain: bool,
}

/// Pending notifications and the task that waits for them.
#[derive(Debug)]
pub(super) struct Signal {
    flags: AtomicU8,
    first_arrival: AtomicI64,
    waker: AtomicWaker,
}

impl Signal {
    pub(super) fn new() -> Self {
        Self { flags: AtomicU8::new(0), first_arrival: AtomicI64::new(NO_ARRIVAL), waker: AtomicWaker::new() }
    }

    pub(super) fn notify(&self, notification: Notification) {
        match notification {
            Notification::Arrived(seq) => {
                self.first_arrival.fetch_min(seq, Ordering::AcqRel);
            }
            Notification::Due => {
                self.flags.fetch_or(DUE, Ordering::AcqRel);
            }
            Notification::Recheck => {
                self.flags.fetch_or(RECHECK, Ordering::AcqRel);
            }
            Notification::Drain => {
                self.flags.fetch_or(DRAIN, Ordering::AcqRel);
            }
        }
        self.waker.wake();
    }

    /// Waits for notifications and takes them. For one task at a time.
    pub(super) async fn notified(&self) -> Notifications {
        poll_fn(|context| {
            if let Some(notifications) = self.take() {
                return Poll::Ready(notifications);
            }
            self.waker.register(context.waker());
            // A notification between the check and the registration woke no task.
            self.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The first pending arrival, without taking it.
    pub(super) fn pending_arrival(&self) -> Option<i64> {
        let first = self.first_arrival.load(Ordering::Acquire);
        (first != NO_ARRIVAL).then_some(first)
    }

    fn take(&self) -> Option<Notifications> {
        let flags = self.flags.swap(0, Ordering::AcqRel);
        let first = self.first_arrival.swap(NO_ARRIVAL, Ordering::AcqRel);
        let notifications = Notifications {
            arrived: (first != NO_ARRIVAL).then_some(first),
            due: flags & DUE != 0,
            recheck: flags & RECHECK != 0,
            drain: flags & DRAIN != 0,
        };
        (notifications.arrived.is_some() || flags != 0).then_some(notifications)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn keeps_notifications_until_they_are_taken_once() {
        let signal = Signal::new();
        assert_eq!(signal.notified().now_or_never(), None);
        for notification in
            [Notification::Arrived(7), Notification::Due, Notification::Arrived(5), Notification::Arrived(9)]
        {
            signal.notify(notification);
        }
        let expected = Notifications { arrived: Some(5), due: true, recheck: false, drain: false };
        assert_eq!(signal.notified().now_or_never(), Some(expected));
        assert_eq!(signal.notified().now_or_never(), None);
        signal.notify(Notification::Recheck);
        signal.notify(Notification::Drain);
        let expected = Notifications { arrived: None, due: false, recheck: true, drain: true };
        assert_eq!(signal.notified().now_or_never(), Some(expected));
    }
}
