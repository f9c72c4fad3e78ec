//! Spans of the stages that a message passes, for a collector of OpenTelemetry; off unless
//! `telemetry.otlp_endpoint` is set.
//!
//! The id of a trace is the id of its message, and the transaction that received the message is the root. So
//! all processes that a message passes add to one trace, and agree on which messages are traced, without
//! passing a trace context on: none is read from a request, and none is sent to a client or a receiver.

mod export;
mod span;

use std::sync::OnceLock;
use std::time::Instant;

use uuid::Uuid;

use crate::config::Telemetry;
use export::SpanExport;
pub use span::{AttributeValue, Stage};

/// Set once, at the start of a process with traces.
static EXPORT: OnceLock<SpanExport> = OnceLock::new();

/// Starts the export if a collector is configured; `role` is that of the process. Waits for nothing: while the
/// collector can't be reached, spans are dropped.
///
/// # Errors
/// The HTTP client can't be built.
pub fn start(telemetry: &Telemetry, role: &'static str) -> anyhow::Result<()> {
    if let Some(endpoint) = &telemetry.otlp_endpoint {
        let export = SpanExport::start(endpoint, telemetry.trace_one_in, role)?;
        EXPORT.get_or_init(|| export);
    }
    Ok(())
}

/// Sends what is left to the collector, within 3 s. Later spans are dropped.
pub async fn finish() {
    if let Some(export) = EXPORT.get() {
        // Blocks until the collector has answered.
        let finished = tokio::task::spawn_blocking(move || export.finish()).await;
        if !matches!(finished, Ok(Ok(()))) {
            tracing::warn!("the last spans were not sent to the collector");
        }
    }
}

/// Measures a stage. While traces are off, all that it does is to find that out.
#[derive(Debug, Clone, Copy)]
pub struct StageTimer {
    stage: Stage,
    started: Option<Instant>,
}

impl StageTimer {
    /// The stage begins. Inlined, since it is called for each mail and answer with traces off, too.
    #[inline]
    pub fn start(stage: Stage) -> Self {
        Self { stage, started: EXPORT.get().map(|_| Instant::now()) }
    }

    /// Those of the messages that are traced.
    pub fn traced(&self, messages: impl IntoIterator<Item = Uuid>) -> Vec<Uuid> {
        match EXPORT.get() {
            Some(export) => messages.into_iter().filter(|message| export.is_traced(*message)).collect(),
            None => Vec::new(),
        }
    }

    /// The stage ends for each of these messages, perhaps with an error, which is a word or a code. Each that is
    /// traced gets a span with these attributes.
    pub fn end(
        self,
        messages: impl IntoIterator<Item = Uuid>,
        error: Option<&'static str>,
        attributes: &[(&'static str, AttributeValue)],
    ) {
        let (Some(export), Some(started)) = (EXPORT.get(), self.started) else { return };
        let duration = started.elapsed();
        for message in messages.into_iter().filter(|message| export.is_traced(*message)) {
            export.send(self.stage, message, duration, error, attributes);
        }
    }
}
