//! Sends spans to a collector over OTLP/HTTP, from a thread of its own and in batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _,
};
use tempmail_model::chance;
use uuid::Uuid;

use super::span::{AttributeValue, Stage, is_traced, span};

/// Spans that wait to be sent; those that do not fit are dropped.
const QUEUE_LENGTH: usize = 8_192;
/// Spans of a request.
const BATCH_SIZE: usize = 512;
/// Longest time that a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Longest time of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for what is left when the process ends.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// Shortest time between two lines of the log about a collector that fails.
const REPORT_PAUSE: Duration = Duration::from_secs(300);

/// The export of a process.
#[derive(Debug)]
pub(super) struct SpanExport {
    processor: BatchSpanProcessor,
    /// Spans that are queued or on their way. Counted here, since the processor does not tell what it drops.
    pending: Arc<AtomicUsize>,
    scope: InstrumentationScope,
    one_in: u32,
}

impl SpanExport {
    /// Starts the thread. One message in `one_in` is traced.
    ///
    /// # Errors
    /// The HTTP client can't be built.
    pub(super) fn start(endpoint: &str, one_in: u32, role: &'static str) -> anyhow::Result<Self> {
        let exporter = OtlpExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(REQUEST_TIMEOUT)
            .build()
            .context("`telemetry.otlp_endpoint`: the HTTP client can't be built")?;
        let pending = Arc::new(AtomicUsize::new(0));
        let mut exporter =
            ReportingExporter { exporter, pending: Arc::clone(&pending), failures: Mutex::default() };
        exporter.set_resource(&resource(role));
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_LENGTH)
            .with_max_export_batch_size(BATCH_SIZE)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let scope = InstrumentationScope::builder("tempmail").with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Self { processor, pending, scope, one_in })
    }

    /// Whether a message is traced.
    pub(super) fn is_traced(&self, message: Uuid) -> bool {
        is_traced(message, self.one_in)
    }

    /// Queues the span of a stage that ends now, or drops it if the queue is full; never blocks.
    pub(super) fn send(
        &self,
        stage: Stage,
        message: Uuid,
        duration: Duration,
        error: Option<&'static str>,
        attributes: &[(&'static str, AttributeValue)],
    ) {
        if self.pending.fetch_add(1, Ordering::Relaxed) >= QUEUE_LENGTH {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            count_spans("dropped", 1);
            return;
        }
        self.processor.on_end(span(self.scope.clone(), stage, message, duration, error, attributes));
    }

    /// Sends what is queued and ends the thread. Blocks for [`FINISH_TIMEOUT`] at most.
    pub(super) fn finish(&self) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(FINISH_TIMEOUT)
    }
}

fn count_spans(result: &'static str, spans: usize) {
    metrics::counter!("tempmail_spans_total", "result" => result).increment(spans as u64);
}

/// What the spans of a process have in common. `OTEL_RESOURCE_ATTRIBUTES` adds to it.
fn resource(role: &'static str) -> Resource {
    Resource::builder()
        .with_service_name("tempmail")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", chance::uuid().to_string()),
            KeyValue::new("tempmail.role", role),
        ])
        .build()
}

/// Counts spans, and logs that some are lost: at the first failure, and while it lasts once in [`REPORT_PAUSE`].
#[derive(Debug)]
struct ReportingExporter {
    exporter: OtlpExporter,
    pending: Arc<AtomicUsize>,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    /// Spans that were lost since the last report.
    lost: usize,
    reported_at: Option<Instant>,
}

impl SpanExporter for ReportingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.exporter.export(batch).await;
        self.pending.fetch_sub(spans, Ordering::Relaxed);
        count_spans(if exported.is_ok() { "sent" } else { "failed" }, spans);
        if let Err(error) = &exported {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.lost += spans;
            if failures.reported_at.is_none_or(|at| at.elapsed() >= REPORT_PAUSE) {
                tracing::warn!(%error, spans = failures.lost, "the collector of traces does not take spans");
                *failures = Failures { lost: 0, reported_at: Some(Instant::now()) };
            }
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn drops_and_counts_spans_that_do_not_fit_into_the_queue() {
        // Accepts connections, and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let export = SpanExport::start(&endpoint, 1, "api").unwrap();
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            for _ in 0..QUEUE_LENGTH + 3 {
                export.send(Stage::Hint, Uuid::from_u128(1), Duration::ZERO, None, &[]);
            }
        });
        let counted = recorder.handle().render();
        assert!(counted.contains("tempmail_spans_total{result=\"dropped\"} 3\n"), "{counted}");
    }
}
