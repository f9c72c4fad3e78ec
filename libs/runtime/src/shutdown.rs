//! Two-stage shutdown: the first signal starts the drain; a second one, or the end of the drain
//! time, stops the process.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time between the first signal and the stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(25);

/// The two stages, which every task of a role watches. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Cancelled first: accept no new work, finish what is in flight.
    pub drain: CancellationToken,
    /// Cancelled last: abort what is not finished.
    pub stop: CancellationToken,
}

impl Shutdown {
    /// Neither stage has begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles SIGTERM and SIGINT: the first starts the drain, and a second one or the end of
    /// [`DRAIN_TIME`] the stop.
    ///
    /// # Errors
    /// The operating system installs no signal handler.
    pub fn on_signals() -> std::io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = Self::new();
        let stages = shutdown.clone();
        tokio::spawn(async move {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            tracing::info!("{name}: draining");
            stages.drain.cancel();
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = tokio::time::sleep(DRAIN_TIME) => {}
            }
            stages.stop.cancel();
        });
        Ok(shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn drains_at_the_first_signal_and_stops_after_the_drain_time() {
        let shutdown = Shutdown::on_signals().unwrap();
        assert!(!shutdown.drain.is_cancelled());
        let kill = std::process::Command::new("kill")
            .args(["-TERM", &std::process::id().to_string()])
            .status()
            .unwrap();
        assert!(kill.success());
        shutdown.drain.cancelled().await;
        assert!(!shutdown.stop.is_cancelled());
        shutdown.stop.cancelled().await;
    }
}
