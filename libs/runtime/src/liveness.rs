//! Whether the tasks of a process make progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A piece of work that takes longer is stuck. All that it may wait for outside of the process, such as Postgres and
/// Redis, has an end of its own before that: so it is the process that is at fault, and a restart may help.
pub const STUCK_AFTER: Duration = Duration::from_secs(90);

/// The tasks without which a process is of no use. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Liveness {
    tasks: Arc<Mutex<Vec<Arc<Task>>>>,
}

#[derive(Debug)]
struct Task {
    name: &'static str,
    state: Mutex<TaskState>,
}

#[derive(Debug, Clone, Copy)]
enum TaskState {
    /// It waits for work.
    Idle,
    Working {
        since: Instant,
    },
    /// It panicked.
    Dead,
    /// It has ended as it should.
    Ended,
}

impl Liveness {
    /// Watches a task, which reports its work to the result and drops that when it ends.
    pub fn watch(&self, name: &'static str) -> TaskPulse {
        let task = Arc::new(Task { name, state: Mutex::new(TaskState::Idle) });
        lock(&self.tasks).push(Arc::clone(&task));
        TaskPulse(task)
    }

    /// The tasks that have been at one piece of work for longer than [`STUCK_AFTER`], or panicked.
    pub fn stuck(&self) -> Vec<&'static str> {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !matches!(*lock(&task.state), TaskState::Ended));
        let is_stuck = |task: &&Arc<Task>| match *lock(&task.state) {
            TaskState::Working { since } => since.elapsed() > STUCK_AFTER,
            TaskState::Dead => true,
            TaskState::Idle | TaskState::Ended => false,
        };
        tasks.iter().filter(is_stuck).map(|task| task.name).collect()
    }
}

/// What a task reports its work to.
#[derive(Debug)]
pub struct TaskPulse(Arc<Task>);

impl TaskPulse {
    /// Begins a piece of work, which ends when the result is dropped. One at a time.
    #[must_use]
    pub fn begin(&self) -> Work {
        *lock(&self.0.state) = TaskState::Working { since: Instant::now() };
        Work(Arc::clone(&self.0))
    }
}

impl Drop for TaskPulse {
    fn drop(&mut self) {
        let state = if std::thread::panicking() { TaskState::Dead } else { TaskState::Ended };
        *lock(&self.0.state) = state;
    }
}

/// A piece of work, until it is dropped.
#[derive(Debug)]
pub struct Work(Arc<Task>);

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, TaskState::Working { .. }) {
            *state = TaskState::Idle;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single assignment or push, so the state is valid after a panic too.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn names_tasks_whose_work_does_not_end() {
        let liveness = Liveness::default();
        let (quick, stuck) = (liveness.watch("quick"), liveness.watch("stuck"));
        let _work = stuck.begin();
        drop(quick.begin());
        tokio::time::advance(STUCK_AFTER).await;
        assert!(liveness.stuck().is_empty());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(liveness.stuck(), ["stuck"], "a task may wait for work for long");
        drop(stuck);
        assert!(liveness.stuck().is_empty(), "it has ended");
    }

    #[tokio::test]
    async fn names_tasks_that_panicked() {
        let liveness = Liveness::default();
        let pulse = liveness.watch("tailer");
        let task = tokio::spawn(async move {
            let _work = pulse.begin();
            panic!("a bug");
        });
        assert!(task.await.is_err());
        assert_eq!(liveness.stuck(), ["tailer"]);
    }
}
