//! Captures the log of roles in the test process.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static INSTALLED: Once = Once::new();

/// Captures the log from now on: our own crates at `trace`, others at `info`.
pub fn capture() {
    INSTALLED.call_once(|| {
        let filter = EnvFilter::new(
            "info,tempmail=trace,tempmail_store=trace,tempmail_bus=trace,tempmail_runtime=trace,\
             tempmail_mail_ingest=trace,tempmail_api_server=trace,tempmail_worker=trace,tempmail_verification=trace",
        );
        tracing_subscriber::fmt()
            .json()
            .with_env_filter(filter)
            .with_writer(CaptureWriter)
            .try_init()
            .expect("no other subscriber is installed in the test process");
    });
}

/// The log so far.
pub fn captured() -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&lines).into_owned()
}

struct CaptureWriter;

impl Write for CaptureWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CaptureWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}
