//! When each mail was sent, accepted, and received by its subscriber.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::mail::numbers_in;

/// Mails with numbers in a row, each to one subscriber.
#[derive(Debug)]
pub struct DeliveryLog {
    begun: Instant,
    first: usize,
    mails: Vec<Mail>,
    misdelivered: AtomicUsize,
    unseen: AtomicUsize,
    all_seen: Notify,
}

/// Moments are nanoseconds since the log starts; 0 is never.
#[derive(Debug, Default)]
struct Mail {
    to: u32,
    sent: AtomicU64,
    accepted: AtomicU64,
    seen: AtomicU64,
    times: AtomicU32,
}

/// Times of the mails to one kind of subscriber.
#[derive(Debug, Default)]
pub struct Times {
    /// From the last octet of a mail to the `250` after it.
    pub accepted: Vec<Duration>,
    /// From that `250` to the subscriber's octets; zero where these came first.
    pub after_accepted: Vec<Duration>,
    /// From the last octet of a mail to the subscriber's octets.
    pub in_all: Vec<Duration>,
    /// Mails that were accepted and not seen.
    pub missed: usize,
    /// Mails that were seen more than once.
    pub repeated: usize,
}

impl DeliveryLog {
    /// Of the mails from number `first` on, each to the subscriber that `to` names.
    pub fn new(first: usize, to: impl IntoIterator<Item = u32>) -> Self {
        let mails: Vec<Mail> = to.into_iter().map(|to| Mail { to, ..Mail::default() }).collect();
        Self {
            begun: Instant::now(),
            first,
            misdelivered: AtomicUsize::new(0),
            unseen: AtomicUsize::new(mails.len()),
            all_seen: Notify::new(),
            mails,
        }
    }

    /// Numbers of its mails.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.mails.len()
    }

    /// Who waits for a mail of it.
    pub fn subscriber_of(&self, number: usize) -> u32 {
        self.mails[number - self.first].to
    }

    /// Mail `number` was sent, and accepted.
    pub fn accepted(&self, number: usize, sent: Instant, accepted: Instant) {
        let mail = &self.mails[number - self.first];
        mail.sent.store(self.nanoseconds(sent), Ordering::Relaxed);
        mail.accepted.store(self.nanoseconds(accepted), Ordering::Release);
    }

    /// A subscriber received a notification of the mails in a text.
    pub fn seen(&self, subscriber: u32, text: &str, at: Instant) {
        for mail in self.of_subscriber(subscriber, text) {
            if mail.times.fetch_add(1, Ordering::Relaxed) == 0
                && mail.seen.swap(self.nanoseconds(at), Ordering::AcqRel) == 0
            {
                self.count_seen();
            }
        }
    }

    /// A subscriber listed the mails in a text after a reconnect; a notification of them is no repetition.
    pub fn found(&self, subscriber: u32, text: &str, at: Instant) {
        for mail in self.of_subscriber(subscriber, text) {
            let at = self.nanoseconds(at);
            if mail.seen.compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.count_seen();
            }
        }
    }

    /// One more mail was seen.
    fn count_seen(&self) {
        if self.unseen.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_seen.notify_waiters();
        }
    }

    /// The mails of this log in a text; those of other subscribers are counted as misdelivered.
    fn of_subscriber(&self, subscriber: u32, text: &str) -> impl Iterator<Item = &Mail> {
        let places = numbers_in(text).filter_map(|number| number.checked_sub(self.first));
        places.filter_map(|state| self.mails.get(state)).filter(move |mail| {
            if mail.to != subscriber {
                self.misdelivered.fetch_add(1, Ordering::Relaxed);
            }
            mail.to == subscriber
        })
    }

    /// Returns when every mail was seen.
    pub async fn completed(&self) {
        let all_seen = self.all_seen.notified();
        if self.unseen.load(Ordering::Acquire) > 0 {
            all_seen.await;
        }
    }

    /// Mails that the wrong subscriber received.
    pub fn misdelivered(&self) -> usize {
        self.misdelivered.load(Ordering::Relaxed)
    }

    /// Times of the mails to those subscribers that `counts`; of the first `warm_up` mails only
    /// whether they were seen.
    pub fn times(&self, warm_up: usize, counts: impl Fn(u32) -> bool) -> Times {
        let mut times = Times::default();
        for (state, mail) in self.mails.iter().enumerate().filter(|(_, mail)| counts(mail.to)) {
            let [sent, accepted, seen] =
                [&mail.sent, &mail.accepted, &mail.seen].map(|moment| moment.load(Ordering::Acquire));
            times.missed += usize::from(seen == 0);
            times.repeated += usize::from(mail.times.load(Ordering::Relaxed) > 1);
            if seen > 0 && accepted > 0 && state >= warm_up {
                let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
                times.accepted.push(between(sent, accepted));
                times.after_accepted.push(between(accepted, seen));
                times.in_all.push(between(sent, seen));
            }
        }
        times
    }

    fn nanoseconds(&self, moment: Instant) -> u64 {
        u64::try_from(moment.duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}
