//! Everything that the roles log while they run in the test process.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static INSTALLED: Once = Once::new();

/// Collects the log from here on: our own crates in full, others from `info`.
pub fn capture() {
    INSTALLED.call_once(|| {
        let filter = EnvFilter::new(
            "info,tempmail=trace,tempmail_store=trace,tempmail_bus=trace,tempmail_runtime=trace,\
             tempmail_mail_ingest=trace,tempmail_api_server=trace,tempmail_worker=trace,tempmail_verification=trace",
        );
        tracing_subscriber::fmt()
            .json()
            .with_env_filter(filter)
            .with_writer(Captured)
            .try_init()
            .expect("no other subscriber is installed in the test process");
    });
}

/// What was logged so far.
pub fn captured() -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&lines).into_owned()
}

struct Captured;

impl Write for Captured {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}
