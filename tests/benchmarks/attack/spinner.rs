//! A thread that burns processor time.

use std::hint::spin_loop;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// It is busy for its share of each of these.
const PERIOD: Duration = Duration::from_millis(10);

/// A running spinner.
#[derive(Debug)]
pub struct Spinner(JoinHandle<()>);

impl Spinner {
    /// Burns `share` (0 to 1) of a core until then.
    pub fn start(share: f64, until: Instant) -> Self {
        let busy = PERIOD.mul_f64(share.clamp(0.0, 1.0));
        Self(thread::spawn(move || {
            let mut began = Instant::now();
            while began < until {
                while began.elapsed() < busy {
                    spin_loop();
                }
                // It does not make up for time in which it was not run: neither did the attacker.
                thread::sleep(PERIOD.saturating_sub(began.elapsed()));
                began = Instant::now();
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
