//! Control planes that one test after the other has to itself: starting one costs some ten seconds of
//! processor time.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::control_plane::ControlPlane;

/// How many there are at once, beside the shared one: each needs 420 MiB.
const MOST: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(MOST);
/// Those that run and that no test uses.
static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// A control plane of one test. It is kept for another test when it is dropped, unless the test failed.
#[derive(Debug)]
pub(super) struct ExclusiveControlPlane {
    /// `None` while it is dropped.
    control_plane: Option<ControlPlane>,
    is_reused: bool,
    reusable: AtomicBool,
    // Dropped last: the next one starts when this one has ended.
    _permit: SemaphorePermit<'static>,
}

impl ExclusiveControlPlane {
    /// An idle one, else what `start` starts; waits while [`MOST`] are in use.
    pub(super) async fn acquire(start: impl AsyncFnOnce() -> ControlPlane) -> Self {
        let permit = PERMITS.acquire().await.expect("the semaphore is never closed");
        Self::with_permit(permit, start).await
    }

    /// Two of them. They are waited for at once, since two tests that each have one would wait for each other.
    pub(super) async fn acquire_two(start: impl AsyncFn() -> ControlPlane + Copy) -> [Self; 2] {
        let mut permits = PERMITS.acquire_many(2).await.expect("the semaphore is never closed");
        let permit = permits.split(1).expect("there are two permits");
        [Self::with_permit(permit, start).await, Self::with_permit(permits, start).await]
    }

    async fn with_permit(
        permit: SemaphorePermit<'static>,
        start: impl AsyncFnOnce() -> ControlPlane,
    ) -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_reused = idle.is_some();
        let control_plane = match idle {
            Some(control_plane) => control_plane,
            None => start().await,
        };
        let reusable = AtomicBool::new(true);
        Self { control_plane: Some(control_plane), is_reused, reusable, _permit: permit }
    }

    /// Whether another test used it before.
    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// No other test gets it.
    pub(super) fn do_not_reuse(&self) {
        self.reusable.store(false, Ordering::Relaxed);
    }
}

impl Deref for ExclusiveControlPlane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.control_plane.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for ExclusiveControlPlane {
    fn drop(&mut self) {
        // A test that failed may have left the API server paused or dead.
        let is_reusable = self.reusable.load(Ordering::Relaxed) && !std::thread::panicking();
        let idle = self.control_plane.take().filter(|_| is_reusable);
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(idle);
    }
}
