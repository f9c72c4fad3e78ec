//! Logs to standard error, and metrics for Prometheus.

pub mod description;

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, LogFormat, RemovedSetting};

/// Buckets of histograms whose name ends in `_seconds`.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0];
/// Buckets of all other histograms, which count.
const COUNTS: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Starts logging to standard error, and warns of settings that were removed.
///
/// Libraries log warnings and errors only, whatever the filter says: at lower levels they may log
/// headers, statements and notices of Postgres, while our logs have ids only.
///
/// # Errors
/// The filter is invalid, or logging was started before.
pub fn init(config: &Config) -> anyhow::Result<()> {
    let telemetry = &config.telemetry;
    let filter = EnvFilter::try_new(&telemetry.log).context("`telemetry.log` is not a valid log filter")?;
    let ours_or_warning =
        filter_fn(|event| event.target().starts_with("tempmail") || *event.level() <= Level::WARN);
    let default = if std::io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match telemetry.format.unwrap_or(default) {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    };
    tracing_subscriber::registry().with(lines).with(ours_or_warning).with(filter).try_init()?;
    config.removed.iter().copied().for_each(RemovedSetting::warn);
    Ok(())
}

/// A handle to the metrics of the process. The first call installs their recorder.
///
/// # Errors
/// Another recorder is installed.
pub fn metrics_handle() -> anyhow::Result<PrometheusHandle> {
    static HANDLE: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    // Held until the recorder is installed: of two first calls at once, the second gets the handle of the first.
    let mut installed = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let recorder = PrometheusBuilder::new()
        .set_buckets(&COUNTS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("another recorder of metrics is installed")?;
    description::describe();
    *installed = Some(handle.clone());
    Ok(handle)
}

/// Bounds the memory of histograms until `stop`.
pub async fn run_upkeep(handle: PrometheusHandle, stop: CancellationToken) {
    let mut period = tokio::time::interval(UPKEEP_PERIOD);
    while stop.run_until_cancelled(period.tick()).await.is_some() {
        handle.run_upkeep();
    }
}
