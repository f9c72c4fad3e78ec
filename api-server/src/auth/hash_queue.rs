//! Passwords that wait to be hashed: those who asked take turns, so none of them waits for all that another asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tempmail_model::password::PasswordHasher;
use uuid::Uuid;

use crate::http::client::{Client, ClientKey};
use crate::http::error::ApiError;

/// Hashes of one party that may wait.
const PER_PARTY: usize = 16;

/// A hash, or with `None` what happens in its place: others go first.
pub(super) type HashJob = Box<dyn FnOnce(Option<&mut PasswordHasher>) + Send>;

/// Who asks for a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HashParty {
    /// The tenant of a token.
    Tenant(Uuid),
    /// A client without a token.
    Client(ClientKey),
    /// All clients without limits.
    Unlimited,
}

impl HashParty {
    /// The party of a client without a token.
    pub(crate) fn of_client(client: Client) -> Self {
        if client.unlimited { Self::Unlimited } else { Self::Client(client.key) }
    }

    fn max_waiting(self) -> usize {
        match self {
            Self::Tenant(_) | Self::Client(_) => PER_PARTY,
            Self::Unlimited => usize::MAX,
        }
    }
}

/// See the module.
pub(super) struct HashQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Jobs that run or wait.
    max: usize,
}

#[derive(Default)]
struct QueueState {
    waiting: HashMap<HashParty, VecDeque<HashJob>>,
    /// Parties with jobs that wait; the first one is next.
    turns: VecDeque<HashParty>,
    /// Jobs that run or wait.
    jobs: usize,
    closed: bool,
}

impl HashQueue {
    /// For so many threads. At most `max_waiting` jobs wait besides those that run.
    pub(super) fn new(threads: usize, max_waiting: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), max: threads + max_waiting }
    }

    /// Adds a job. Where the queue is full, the newest job of the party with the most makes room, unless that is this
    /// party.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many jobs wait.
    pub(super) fn push(&self, party: HashParty, job: HashJob) -> Result<(), ApiError> {
        let mut state = self.lock();
        let own = state.waiting.get(&party).map_or(0, VecDeque::len);
        if own >= party.max_waiting() {
            return Err(ApiError::Busy("passwords_of_caller"));
        }
        let replaced = if state.jobs < self.max {
            None
        } else {
            let replaced = state.take_newest_of_the_largest(own + 1);
            Some(replaced.ok_or(ApiError::Busy("passwords"))?)
        };
        state.jobs += 1;
        state.waiting.entry(party).or_default().push_back(job);
        if own == 0 {
            state.turns.push_back(party);
        }
        drop(state);
        self.changed.notify_one();
        if let Some(replaced) = replaced {
            replaced(None);
        }
        Ok(())
    }

    /// The next job; waits for one. `None` where the queue is closed. Each job is followed by [`Self::done`].
    pub(super) fn next(&self) -> Option<HashJob> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = state.take_next() {
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A job has run.
    pub(super) fn done(&self) {
        self.lock().jobs -= 1;
    }

    /// Ends the threads that wait in [`Self::next`].
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// The oldest job of the party whose turn it is.
    fn take_next(&mut self) -> Option<HashJob> {
        let party = self.turns.pop_front()?;
        let jobs = self.waiting.get_mut(&party)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&party);
        } else {
            self.turns.push_back(party);
        }
        Some(job)
    }

    /// The newest job of the party with the most, if these are more than `least`.
    fn take_newest_of_the_largest(&mut self, least: usize) -> Option<HashJob> {
        let (_, jobs) = self.waiting.iter_mut().max_by_key(|(_, jobs)| jobs.len())?;
        // More than one: the party keeps its turn.
        let job = if jobs.len() > least { jobs.pop_back() } else { None }?;
        self.jobs -= 1;
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn tenant(n: u128) -> HashParty {
        HashParty::Tenant(Uuid::from_u128(n))
    }

    /// Runs the jobs of a queue, which send their names; those that were replaced send theirs negated.
    fn push(
        queue: &HashQueue,
        party: HashParty,
        name: i32,
        order: &mpsc::Sender<i32>,
    ) -> Result<(), ApiError> {
        let order = order.clone();
        queue.push(
            party,
            Box::new(move |hasher| order.send(if hasher.is_some() { name } else { -name }).unwrap()),
        )
    }

    fn run_all(queue: &HashQueue, order: &mpsc::Receiver<i32>) -> Vec<i32> {
        let mut hasher = PasswordHasher::default();
        while !queue.lock().waiting.is_empty() {
            let job = queue.next().expect("the queue is open");
            job(Some(&mut hasher));
            queue.done();
        }
        order.try_iter().collect()
    }

    #[test]
    fn parties_take_turns() {
        let (queue, (sender, order)) = (HashQueue::new(1, 63), mpsc::channel());
        for name in 1..=3 {
            push(&queue, tenant(1), name, &sender).unwrap();
        }
        push(&queue, tenant(2), 4, &sender).unwrap();
        push(&queue, tenant(3), 5, &sender).unwrap();
        assert_eq!(run_all(&queue, &order), [1, 4, 5, 2, 3]);
        assert!(queue.lock().turns.is_empty() && queue.lock().jobs == 0);
    }

    #[test]
    fn the_party_with_the_most_makes_room_for_one_with_less() {
        let (queue, (sender, order)) = (HashQueue::new(1, 2), mpsc::channel());
        for name in 1..=3 {
            push(&queue, tenant(1), name, &sender).unwrap();
        }
        assert_eq!(push(&queue, tenant(1), 4, &sender), Err(ApiError::Busy("passwords")));
        push(&queue, tenant(2), 5, &sender).unwrap();
        assert_eq!(
            push(&queue, tenant(2), 6, &sender),
            Err(ApiError::Busy("passwords")),
            "both have the same share"
        );
        assert_eq!(run_all(&queue, &order), [-3, 1, 5, 2]);
    }

    #[test]
    fn bounds_the_jobs_of_a_party() {
        let (queue, (sender, _order)) = (HashQueue::new(1, 63), mpsc::channel());
        for name in 1..=16 {
            push(&queue, tenant(1), name, &sender).unwrap();
        }
        assert_eq!(push(&queue, tenant(1), 17, &sender), Err(ApiError::Busy("passwords_of_caller")));
        for name in 1..=48 {
            push(&queue, HashParty::Unlimited, name, &sender).unwrap();
        }
    }
}
