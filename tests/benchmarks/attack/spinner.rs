//! A thread that burns processor time.

use std::hint::spin_loop;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tempmail_tests::attack::CpuReading;

/// A running spinner.
#[derive(Debug)]
pub struct Spinner(JoinHandle<()>);

impl Spinner {
    /// Burns what was read of another thread: as much, and when it did.
    pub fn start(readings: Vec<CpuReading>) -> Self {
        Self(thread::spawn(move || {
            let started = Instant::now();
            for pair in readings.windows(2) {
                let [from, to] = [pair[0], pair[1]];
                // It does not make up for time in which it was not run: neither did the other thread.
                let Some(left) = to.at.checked_sub(started.elapsed()) else { continue };
                thread::sleep(from.at.saturating_sub(started.elapsed()));
                let busy = (to.used - from.used).min(left);
                let began = Instant::now();
                while began.elapsed() < busy {
                    spin_loop();
                }
            }
        }))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It panicked.
    pub async fn wait(self) -> anyhow::Result<()> {
        let joined = tokio::task::spawn_blocking(|| self.0.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the spinner panicked"))
    }
}
