//! Shares of a sum with a bound. A key holds at most its cap, and at most what is left: however many hold all that they
//! may, one more finds room. Nobody is displaced.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A sum with a bound, by who holds how much of it. Clones share it.
pub struct Shares<K>(Arc<Sum<K>>);

struct Sum<K> {
    bound: usize,
    amounts: Mutex<Amounts<K>>,
    /// Something was released.
    released: Notify,
}

struct Amounts<K> {
    held: usize,
    by_key: HashMap<K, usize>,
}

/// One that an amount counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<K> {
    /// Who it is.
    pub key: K,
    /// What it holds at most.
    pub cap: usize,
}

impl<K> Holder<K> {
    /// The same one by another key.
    pub fn map<L>(self, key: impl FnOnce(K) -> L) -> Holder<L> {
        Holder { key: key(self.key), cap: self.cap }
    }
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded<K> {
    /// It is not left.
    Sum,
    /// This holder would have more than its cap, or more than what is left.
    Holder(K),
}

/// An amount that is held; released on drop.
pub struct Share<K: Copy + Eq + Hash> {
    shares: Shares<K>,
    holders: Vec<Holder<K>>,
    amount: usize,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// A sum of at most `bound`.
    pub fn new(bound: usize) -> Self {
        let amounts = Mutex::new(Amounts { held: 0, by_key: HashMap::new() });
        Self(Arc::new(Sum { bound, amounts, released: Notify::new() }))
    }

    /// An empty share, which counts for each of `holders` once it grows; without one it counts in the sum only.
    pub fn open(&self, holders: impl IntoIterator<Item = Holder<K>>) -> Share<K> {
        Share { shares: self.clone(), holders: holders.into_iter().collect(), amount: 0 }
    }

    /// A share of `amount`.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn try_acquire(
        &self,
        holders: impl IntoIterator<Item = Holder<K>>,
        amount: usize,
    ) -> Result<Share<K>, Exceeded<K>> {
        let mut share = self.open(holders);
        share.grow(amount, 0)?;
        Ok(share)
    }

    /// A share of `amount`; waits at most for `within` until there is room.
    ///
    /// # Errors
    /// There was none.
    pub async fn acquire(
        &self,
        holders: impl IntoIterator<Item = Holder<K>>,
        amount: usize,
        within: Duration,
    ) -> Result<Share<K>, Exceeded<K>> {
        let deadline = Instant::now() + within;
        let mut share = self.open(holders);
        loop {
            let mut released = std::pin::pin!(self.0.released.notified());
            released.as_mut().enable();
            let Err(exceeded) = share.grow(amount, 0) else { return Ok(share) };
            if timeout_at(deadline, released).await.is_err() {
                return Err(exceeded);
            }
        }
    }

    /// The sum of all amounts that are held.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, Amounts<K>> {
        self.0.amounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Amounts<K> {
    /// Whether `more` may be held for `holders`, so that at least `keep` is left.
    fn check(
        &self,
        holders: &[Holder<K>],
        more: usize,
        bound: usize,
        keep: usize,
    ) -> Result<(), Exceeded<K>> {
        let left = bound.saturating_sub(keep).checked_sub(self.held).and_then(|left| left.checked_sub(more));
        let left = left.ok_or(Exceeded::Sum)?;
        let within = |holder: &Holder<K>| match self.by_key.get(&holder.key) {
            // It has all that is left, if it needs that.
            None => holder.cap > 0,
            Some(held) => held.saturating_add(more) <= holder.cap.min(left),
        };
        holders
            .iter()
            .find(|holder| !within(holder))
            .map_or(Ok(()), |holder| Err(Exceeded::Holder(holder.key)))
    }

    fn add(&mut self, holders: &[Holder<K>], more: usize) {
        self.held += more;
        for holder in holders {
            *self.by_key.entry(holder.key).or_insert(0) += more;
        }
    }

    fn subtract(&mut self, holders: &[Holder<K>], less: usize) {
        self.held -= less;
        for holder in holders {
            if let Entry::Occupied(mut held) = self.by_key.entry(holder.key) {
                *held.get_mut() -= less;
                if *held.get() == 0 {
                    held.remove();
                }
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Share<K> {
    /// Holds `more` in addition, if that leaves at least `keep` of the sum.
    ///
    /// # Errors
    /// There is no room for it; the share is as it was.
    pub fn grow(&mut self, more: usize, keep: usize) -> Result<(), Exceeded<K>> {
        if more == 0 {
            return Ok(());
        }
        let mut amounts = self.shares.lock();
        amounts.check(&self.holders, more, self.shares.0.bound, keep)?;
        amounts.add(&self.holders, more);
        drop(amounts);
        self.amount += more;
        Ok(())
    }

    /// Also counts for `holder` from now on.
    ///
    /// # Errors
    /// It has no room for the amount; the share is as it was.
    pub fn count_for(&mut self, holder: Holder<K>) -> Result<(), Exceeded<K>> {
        let mut amounts = self.shares.lock();
        // The sum has the amount already.
        amounts.held -= self.amount;
        let checked = amounts.check(&[holder], self.amount, self.shares.0.bound, 0);
        amounts.held += self.amount;
        checked?;
        if self.amount > 0 {
            *amounts.by_key.entry(holder.key).or_insert(0) += self.amount;
        }
        drop(amounts);
        self.holders.push(holder);
        Ok(())
    }

    /// Releases what it holds beyond `amount`.
    pub fn shrink_to(&mut self, amount: usize) {
        if let Some(less) = self.amount.checked_sub(amount).filter(|less| *less > 0) {
            self.shares.lock().subtract(&self.holders, less);
            self.amount = amount;
            self.shares.0.released.notify_waiters();
        }
    }

    /// What it holds.
    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl<K: Copy + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Shares<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares").field("bound", &self.0.bound).finish_non_exhaustive()
    }
}

impl<K: Copy + Eq + Hash> fmt::Debug for Share<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("amount", &self.amount).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use proptest::prelude::*;

    use super::*;

    const CAP: usize = 100;

    fn one(key: u32) -> [Holder<u32>; 1] {
        [Holder { key, cap: CAP }]
    }

    /// Takes one after the other, until there is no room.
    fn fill(shares: &Shares<u32>, key: u32) -> Vec<Share<u32>> {
        std::iter::from_fn(|| shares.try_acquire(one(key), 1).ok()).collect()
    }

    #[test]
    fn a_key_holds_at_most_its_cap() {
        let shares = Shares::new(1_000);
        let held = fill(&shares, 1);
        assert_eq!((held.len(), shares.held()), (CAP, CAP));
        assert_eq!(shares.try_acquire(one(1), 1).unwrap_err(), Exceeded::Holder(1));
        drop(held);
        assert!(shares.held() == 0 && shares.lock().by_key.is_empty());
    }

    #[test]
    fn one_more_finds_room_however_many_hold_their_cap() {
        for others in [4, 100] {
            let shares = Shares::new(others * CAP);
            let held: Vec<_> = (0..).map(|key| fill(&shares, key)).take(others).collect();
            assert!(held[..others - 1].iter().all(|held| held.len() == CAP));
            assert_eq!(held[others - 1].len(), CAP / 2, "as much as is left");
            let last = fill(&shares, u32::MAX);
            assert_eq!(last.len(), CAP / 4);
        }
    }

    #[test]
    fn a_key_that_holds_nothing_takes_all_that_is_left_at_once() {
        let shares = Shares::new(300);
        let whole = shares.try_acquire(one(1), 300).unwrap();
        assert_eq!(shares.try_acquire(one(2), 1).unwrap_err(), Exceeded::Sum);
        drop(whole);
        assert!(shares.try_acquire(one(2), 1).is_ok());
    }

    #[test]
    fn each_holder_of_a_share_has_a_cap_of_its_own() {
        let shares = Shares::new(1_000);
        let of = |narrow| [Holder { key: narrow, cap: 2 }, Holder { key: 48, cap: 4 }];
        let held = [1, 1, 2, 2].map(|narrow| shares.try_acquire(of(narrow), 1).unwrap());
        assert_eq!(shares.try_acquire(of(1), 1).unwrap_err(), Exceeded::Holder(1));
        assert_eq!(shares.try_acquire(of(3), 1).unwrap_err(), Exceeded::Holder(48), "the widest counts too");
        drop(held);
        assert!(shares.lock().by_key.is_empty());
    }

    #[test]
    fn a_share_grows_and_shrinks_and_leaves_what_is_kept() {
        let shares = Shares::new(80);
        let mut share = shares.open(one(1));
        share.grow(30, 10).unwrap();
        assert_eq!(share.grow(6, 10), Err(Exceeded::Holder(1)));
        share.grow(10, 0).unwrap();
        assert_eq!(share.grow(1, 0), Err(Exceeded::Holder(1)));
        assert_eq!(share.grow(31, 10), Err(Exceeded::Sum));
        share.shrink_to(5);
        assert_eq!((share.amount(), shares.held()), (5, 5));
        share.shrink_to(6);
        assert_eq!(share.amount(), 5);
    }

    #[test]
    fn a_share_counts_for_one_who_becomes_known_later() {
        let shares = Shares::new(10);
        let holder = Holder { key: 1, cap: 2 };
        let mut both = [shares.try_acquire([], 1).unwrap(), shares.try_acquire([], 1).unwrap()];
        let mut third = shares.try_acquire([], 1).unwrap();
        assert!(both.iter_mut().all(|share| share.count_for(holder).is_ok()));
        assert_eq!(third.count_for(holder), Err(Exceeded::Holder(1)));
        drop((both, third));
        assert!(shares.held() == 0 && shares.lock().by_key.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_room_within_its_time() {
        const WITHIN: Duration = Duration::from_secs(5);
        let shares = Shares::new(10);
        let held = shares.try_acquire(one(1), 8).unwrap();
        let mut waiting = std::pin::pin!(shares.acquire(one(2), 4, WITHIN));
        assert!(poll!(waiting.as_mut()).is_pending());
        drop(held);
        let second = waiting.await.unwrap();
        let began = Instant::now();
        assert_eq!(shares.acquire(one(3), 7, WITHIN).await.unwrap_err(), Exceeded::Sum);
        assert_eq!(began.elapsed(), WITHIN);
        drop(second);
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_what_is_held_and_within_the_bound(
            steps in prop::collection::vec((0_u32..5, 1_usize..40, any::<bool>()), 1..200),
        ) {
            let shares = Shares::new(200);
            let mut held: Vec<(u32, Share<u32>)> = Vec::new();
            for (key, amount, releases) in steps {
                if releases {
                    held.retain(|(of, _)| *of != key);
                } else if let Ok(share) = shares.try_acquire(one(key), amount) {
                    held.push((key, share));
                }
                let sum: usize = held.iter().map(|(_, share)| share.amount()).sum();
                prop_assert!(sum == shares.held() && sum <= 200);
                for of in 0..5 {
                    let own: usize = held.iter().filter(|(key, _)| *key == of).map(|(_, s)| s.amount()).sum();
                    prop_assert!(own <= CAP);
                }
            }
        }
    }
}
