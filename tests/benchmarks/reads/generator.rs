//! Requests over kept connections, each sent as soon as the one before it on its connection was
//! answered. It runs on threads of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

use super::Request;
use crate::http::HttpClient;
use crate::measure::Latencies;

/// Results of a run.
#[derive(Debug)]
pub struct ReadReport {
    /// Answers, all with 200.
    pub answers: usize,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Of each request.
    pub latencies: Latencies,
}

impl ReadReport {
    /// Requests a second.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 requests")]
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends for so long, a connection for each list of requests, which start over at their end.
///
/// # Errors
/// An answer is not 200, or a connection breaks.
pub async fn run(
    server: SocketAddr,
    requests: Vec<Vec<Request>>,
    span: Duration,
    threads: usize,
) -> anyhow::Result<ReadReport> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .context("the generator gets no threads")?;
        runtime.block_on(run_here(server, requests, span))
    };
    tokio::task::spawn_blocking(run).await?
}

async fn run_here(
    server: SocketAddr,
    requests: Vec<Vec<Request>>,
    span: Duration,
) -> anyhow::Result<ReadReport> {
    let mut clients = Vec::new();
    for requests in requests {
        let mut client = HttpClient::connect(server).await?;
        // What is made for a connection when it is first used is no part of a read.
        get(&mut client, &requests[0]).await?;
        clients.push((client, requests));
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (mut client, requests) in clients {
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            for request in requests.iter().cycle() {
                let sent = Instant::now();
                if sent.duration_since(started) >= span {
                    break;
                }
                get(&mut client, request).await?;
                latencies.push(sent.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(task) = tasks.join_next().await {
        latencies.extend(task??);
    }
    let elapsed = started.elapsed();
    Ok(ReadReport { answers: latencies.len(), elapsed, latencies: Latencies::new(latencies) })
}

async fn get(client: &mut HttpClient, request: &Request) -> anyhow::Result<()> {
    let answer = client.get_with(&request.target, &request.credential).await?;
    ensure!(answer.status == 200, "{} was answered with {}", request.target, answer.status);
    Ok(())
}
