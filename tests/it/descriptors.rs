//! File descriptors for tests that open connections by the thousand: one such test at a time, since
//! all tests of a run are one process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::{Mutex, MutexGuard};

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Descriptors that are left to the tests beside it, on either side.
const LEFT: usize = 3_000;

/// The right to open connections by the thousand.
pub struct Many {
    _alone: MutexGuard<'static, ()>,
    /// How many.
    pub connections: usize,
}

impl Many {
    /// The right to `most` of them, or as many as the limit of the system leaves room for; with it the
    /// limit of the process, and of those that it starts, is raised as far as that goes.
    pub async fn of(most: usize) -> Self {
        let _alone = ONE_AT_A_TIME.lock().await;
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        // What can't be raised is used as it is.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let room = usize::try_from(soft).unwrap_or(usize::MAX).saturating_sub(LEFT);
        Self { _alone, connections: most.min(room) }
    }
}
