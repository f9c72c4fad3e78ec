//! A bounded number of permits, for which those who wait take turns: one that waits with many mails delays its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempmail_runtime::cores;
use tokio::sync::oneshot;

/// Permits, and who waits for them. Clones share them.
#[derive(Debug)]
pub(crate) struct FairPermits<K: PartialEq>(Arc<Mutex<Queue<K>>>);

type Waiter<K> = oneshot::Sender<FairPermit<K>>;

#[derive(Debug)]
struct Queue<K: PartialEq> {
    free: usize,
    /// Those who wait, with their waiters; who got a permit goes to the end.
    waiting: VecDeque<(K, VecDeque<Waiter<K>>)>,
}

/// A permit; released on drop.
#[derive(Debug)]
pub(crate) struct FairPermit<K: PartialEq>(Option<FairPermits<K>>);

impl<K: PartialEq> FairPermits<K> {
    /// So many permits.
    pub(crate) fn new(permits: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue { free: permits, waiting: VecDeque::new() })))
    }

    /// As many as [half of the cores](cores::half).
    pub(crate) fn for_half_of_the_cores() -> Self {
        Self::new(cores::half())
    }

    /// Waits for a permit, in the turn of `key`.
    pub(crate) async fn acquire(&self, key: K) -> FairPermit<K> {
        let waiter = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return FairPermit(Some(self.clone()));
            }
            queue.push(key)
        };
        // The sender is in the queue until it sends.
        waiter.await.unwrap_or(FairPermit(None))
    }

    fn release(&self) {
        loop {
            let waiter = {
                let mut queue = self.lock();
                let Some(waiter) = queue.next() else {
                    queue.free += 1;
                    return;
                };
                waiter
            };
            match waiter.send(FairPermit(Some(self.clone()))) {
                Ok(()) => return,
                // The session has ended: the permit is for the next one.
                Err(mut permit) => permit.0 = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: PartialEq> Clone for FairPermits<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: PartialEq> Queue<K> {
    fn push(&mut self, key: K) -> oneshot::Receiver<FairPermit<K>> {
        let (waiter, permit) = oneshot::channel();
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == key) {
            Some((_, waiters)) => waiters.push_back(waiter),
            None => self.waiting.push_back((key, VecDeque::from([waiter]))),
        }
        permit
    }

    /// The next waiter, which leaves the queue.
    fn next(&mut self) -> Option<Waiter<K>> {
        let (key, mut waiters) = self.waiting.pop_front()?;
        let waiter = waiters.pop_front();
        if !waiters.is_empty() {
            self.waiting.push_back((key, waiters));
        }
        waiter
    }
}

impl<K: PartialEq> Drop for FairPermit<K> {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    type Acquiring<'a> = Pin<Box<dyn Future<Output = FairPermit<char>> + 'a>>;

    /// The permit, if it was granted.
    async fn granted(waiter: &mut Acquiring<'_>) -> Option<FairPermit<char>> {
        poll_fn(|cx| {
            Poll::Ready(match waiter.as_mut().poll(cx) {
                Poll::Ready(permit) => Some(permit),
                Poll::Pending => None,
            })
        })
        .await
    }

    #[tokio::test]
    async fn those_who_wait_take_turns() {
        let permits = FairPermits::new(1);
        let mut held = vec![permits.acquire('a').await];
        let mut waiters: Vec<(char, Acquiring<'_>)> = Vec::new();
        for key in ['a', 'a', 'a', 'b', 'c', 'b'] {
            let mut waiter: Acquiring<'_> = Box::pin(permits.acquire(key));
            assert!(granted(&mut waiter).await.is_none());
            waiters.push((key, waiter));
        }
        let mut order = String::new();
        while !waiters.is_empty() {
            held.clear();
            for at in 0..waiters.len() {
                if let Some(permit) = granted(&mut waiters[at].1).await {
                    held.push(permit);
                    order.push(waiters.remove(at).0);
                    break;
                }
            }
            assert_eq!(held.len(), 1, "the permit was not granted after {order}");
        }
        assert_eq!(order, "abcaba");
    }

    #[tokio::test]
    async fn a_permit_of_one_that_no_longer_waits_goes_to_the_next() {
        let permits = FairPermits::new(1);
        let held = permits.acquire('a').await;
        let mut gone: Acquiring<'_> = Box::pin(permits.acquire('b'));
        let mut late: Acquiring<'_> = Box::pin(permits.acquire('c'));
        let mut next: Acquiring<'_> = Box::pin(permits.acquire('d'));
        for waiter in [&mut gone, &mut late, &mut next] {
            assert!(granted(waiter).await.is_none());
        }
        drop(gone);
        drop(held);
        drop(late);
        let permit = granted(&mut next).await;
        assert!(permit.is_some());
        drop(permit);
        drop(permits.acquire('e').await);
    }
}
