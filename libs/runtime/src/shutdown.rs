//! Two-stage shutdown: the first signal drains, the second one or the end of the drain time
//! cuts.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time between the first signal and the cut.
pub const DRAIN_TIME: Duration = Duration::from_secs(25);

/// What every loop of a role listens to. Clones share both stages.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Cancelled first: accept nothing new, finish what is in hand.
    pub drain: CancellationToken,
    /// Cancelled last: let go of what is not finished.
    pub stop: CancellationToken,
}

impl Shutdown {
    /// Both stages open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens to SIGTERM and SIGINT: the first begins to drain, a second one or
    /// [`DRAIN_TIME`] stops.
    ///
    /// # Errors
    /// The operating system takes no signal handler.
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
    async fn the_first_signal_drains_and_the_drain_time_ends_in_a_stop() {
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
