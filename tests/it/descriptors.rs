//! File descriptors for tests that open thousands of connections. Such tests run one at a time, since
//! all tests share a process.

use tempmail_tests::open_files;
use tokio::sync::{Mutex, MutexGuard};

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Descriptors that remain for other tests, in this process and in the program.
const REMAINING: usize = 3_000;

/// The exclusive permit to open thousands of connections.
pub struct ManyConnections {
    _permit: MutexGuard<'static, ()>,
    /// How many connections the test may open.
    pub connections: usize,
}

impl ManyConnections {
    /// Reserves `max` connections, or as many as the limit of open files allows. It raises the limit of
    /// this process, which programs that are started later inherit.
    pub async fn reserve(max: usize) -> Self {
        let permit = ONE_AT_A_TIME.lock().await;
        let available = open_files::raise_limit().saturating_sub(REMAINING);
        Self { _permit: permit, connections: max.min(available) }
    }
}
