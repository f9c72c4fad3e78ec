//! What one waiter is told between two looks: a few bits, and no queue.

use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;

const DUE: u8 = 1;
const RECHECK: u8 = 2;
const DRAIN: u8 = 4;

/// Nothing has arrived since the last look.
const NOTHING: i64 = i64::MAX;

/// Why a waiter is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// A message with this place in the stream arrived under one of its topics; 0: it is not
    /// known what arrived.
    Arrived(i64),
    /// The time that it asked for has come.
    Due,
    /// Something that it rests on changed, or expired.
    Recheck,
    /// The process drains, and it is this waiter's turn.
    Drain,
}

/// What a waiter was told since it last looked; several things may have come together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Woken {
    /// The first arrival, by its place in the stream; 0 where it is not known.
    pub arrived: Option<i64>,
    /// The time that was asked for has come.
    pub due: bool,
    /// What it rests on changed or expired: look again at who may read.
    pub recheck: bool,
    /// The process drains: tell the client to come back.
    pub drain: bool,
}

/// A waiter's letter box.
#[derive(Debug)]
pub(super) struct Signal {
    told: AtomicU8,
    first: AtomicI64,
    waker: AtomicWaker,
}

impl Signal {
    pub(super) fn new() -> Self {
        Self { told: AtomicU8::new(0), first: AtomicI64::new(NOTHING), waker: AtomicWaker::new() }
    }

    pub(super) fn wake(&self, wake: Wake) {
        match wake {
            Wake::Arrived(seq) => {
                self.first.fetch_min(seq, Ordering::AcqRel);
            }
            Wake::Due => {
                self.told.fetch_or(DUE, Ordering::AcqRel);
            }
            Wake::Recheck => {
                self.told.fetch_or(RECHECK, Ordering::AcqRel);
            }
            Wake::Drain => {
                self.told.fetch_or(DRAIN, Ordering::AcqRel);
            }
        }
        self.waker.wake();
    }

    /// Waits until something was told, and takes it. For one task at a time.
    pub(super) async fn woken(&self) -> Woken {
        poll_fn(|context| {
            if let Some(woken) = self.take() {
                return Poll::Ready(woken);
            }
            self.waker.register(context.waker());
            // What came between the look and the registration woke nobody.
            self.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The first arrival that was told and is not taken yet.
    pub(super) fn arrived(&self) -> Option<i64> {
        let first = self.first.load(Ordering::Acquire);
        (first != NOTHING).then_some(first)
    }

    fn take(&self) -> Option<Woken> {
        let told = self.told.swap(0, Ordering::AcqRel);
        let first = self.first.swap(NOTHING, Ordering::AcqRel);
        let woken = Woken {
            arrived: (first != NOTHING).then_some(first),
            due: told & DUE != 0,
            recheck: told & RECHECK != 0,
            drain: told & DRAIN != 0,
        };
        (woken.arrived.is_some() || told != 0).then_some(woken)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn what_came_before_the_wait_is_kept_and_told_once() {
        let signal = Signal::new();
        assert_eq!(signal.woken().now_or_never(), None);
        for wake in [Wake::Arrived(7), Wake::Due, Wake::Arrived(5), Wake::Arrived(9)] {
            signal.wake(wake);
        }
        let woken = Woken { arrived: Some(5), due: true, recheck: false, drain: false };
        assert_eq!(signal.woken().now_or_never(), Some(woken));
        assert_eq!(signal.woken().now_or_never(), None);
        signal.wake(Wake::Recheck);
        signal.wake(Wake::Drain);
        let woken = Woken { arrived: None, due: false, recheck: true, drain: true };
        assert_eq!(signal.woken().now_or_never(), Some(woken));
    }
}
