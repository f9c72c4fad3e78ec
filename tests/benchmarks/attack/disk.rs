//! Whether the disk is as quiet as it was before anything was measured: what an attack wrote may keep it busy for long
//! after, and would be measured with what comes next.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::measure::Latencies;

/// What is written at a time: a page of Postgres.
const PAGE: [u8; 8 << 10] = [0x5a; 8 << 10];
/// Writes in a look at the disk, and the time between two of them.
const WRITES: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// A disk is quiet while its slow writes take at most so many times as long as at the beginning.
const TOLERANCE: f64 = 2.0;
/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A disk with a file of its own on it.
#[derive(Debug)]
pub struct Disk {
    file: File,
    quiet: Duration,
}

impl Disk {
    /// The disk of a directory, which is quiet now.
    ///
    /// # Errors
    /// A file can't be written there.
    pub async fn new(directory: &Path) -> io::Result<Self> {
        let file = File::create(directory.join("disk"))?;
        let mut disk = Self { file, quiet: Duration::ZERO };
        disk.quiet = disk.slow_write().await?;
        Ok(disk)
    }

    /// Waits until it is quiet again, two minutes at most; says so if it is still busy then.
    ///
    /// # Errors
    /// It can't be written to.
    pub async fn wait_until_quiet(&self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            let slow = self.slow_write().await?;
            if slow <= self.quiet.mul_f64(TOLERANCE) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                println!(
                    "the disk is busy: slow writes take {slow:?}, and took {:?} at the beginning",
                    self.quiet
                );
                return Ok(());
            }
        }
    }

    /// The time that 5 % of writes exceed.
    async fn slow_write(&self) -> io::Result<Duration> {
        let mut times = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            sleep(PAUSE).await;
            let began = Instant::now();
            self.file.write_all_at(&PAGE, 0)?;
            self.file.sync_data()?;
            times.push(began.elapsed());
        }
        Ok(Latencies::new(times).quantile(0.95))
    }
}
