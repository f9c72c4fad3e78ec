//! `wrk`, a generator of others: what this machine gives at most.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

/// What it printed.
#[derive(Debug)]
pub struct WrkReport {
    /// Requests a second.
    pub rate: f64,
    /// Latencies in milliseconds.
    pub p50: f64,
    /// As above.
    pub p99: f64,
}

/// Asks for one file over kept connections.
///
/// # Errors
/// It can't be started, an answer was no 2xx or 3xx, or it prints something else than it did.
pub async fn run(
    program: &Path,
    server: SocketAddr,
    file: &str,
    connections: usize,
    threads: usize,
    seconds: u64,
) -> anyhow::Result<WrkReport> {
    let mut command = Command::new(program);
    command
        .arg("--latency")
        .args(["-c", &connections.to_string(), "-t", &threads.to_string(), "-d", &format!("{seconds}s")])
        .arg(format!("http://{server}/{file}"))
        .kill_on_drop(true);
    let output = command.output().await.context("wrk can't be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk ended with {}", output.status);
    ensure!(!text.contains("Non-2xx"), "wrk: {text}");
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.map(str::trim).with_context(|| format!("wrk prints no {name}: {text}"))
    };
    Ok(WrkReport {
        rate: figure("Requests/sec:")?.parse()?,
        p50: milliseconds(figure("50%")?)?,
        p99: milliseconds(figure("99%")?)?,
    })
}

/// `87.00us`, `1.20ms` or `1.01s`.
fn milliseconds(text: &str) -> anyhow::Result<f64> {
    let (number, factor) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-3)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else {
        (text.strip_suffix('s').context("wrk prints no unit of time")?, 1e3)
    };
    Ok(number.parse::<f64>()? * factor)
}
