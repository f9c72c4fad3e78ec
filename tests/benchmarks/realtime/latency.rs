//! How long a mail takes from its sender to the one who waits for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tempmail_tests::port::free_port;

use super::crowd::{Crowd, Generator};
use super::flow::{self, Destination};
use super::ledger::Ledger;
use super::platform::Platform;
use super::{GATHER_A_SECOND, Kind, Realtime};
use crate::measure::{Latencies, millis, print_table};
use crate::process::Process;

/// Seconds of mail that only have to arrive.
const WARM_UP: u32 = 2;
/// How long the last mails may take.
const ARRIVE: Duration = Duration::from_secs(15);

/// Measures with the bus of the roles, while Redis is away, and peers.
///
/// # Errors
/// A waiter or a mail is refused.
pub async fn run(realtime: &Realtime, platform: &Platform, generator: &Generator) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    match realtime.redis(platform).await? {
        None => {
            let (pod, smtp) = platform.up().await?;
            let run = Run { realtime, platform, generator, smtp, http: pod.http, processes: &[&pod.process] };
            rows.extend(run.measure("up", "one process", 1, || async { Ok(()) }).await?);
            pod.has(0).await?;
            pod.process.stop().await?;
        }
        Some(redis) => {
            let pod = platform.api(free_port(), Some(&redis)).await?;
            let (ingest, smtp) = platform.ingest(Some(&redis)).await?;
            let processes = [&pod.process, &ingest];
            let run = Run { realtime, platform, generator, smtp, http: pod.http, processes: &processes };
            rows.extend(run.measure("redis", "Redis between", 1, || async { Ok(()) }).await?);
            pod.has(0).await?;
            let kill = || redis.process.kill();
            rows.extend(run.measure("away", "Redis away", 1 + mails(realtime) as usize, kill).await?);
            pod.process.stop().await?;
            ingest.stop().await?;
        }
    }
    for peer in realtime.peers() {
        let running = peer.start(platform.directory()).await?;
        let ledger = realtime.ledger(1, mails(realtime));
        let server = running.publisher.http;
        let mut crowd = Crowd::new(generator, server, Arc::clone(&ledger));
        crowd.gather((0..realtime.waiters).map(|number| peer.way(number)), GATHER_A_SECOND).await?;
        let destination = Destination::Publication(running.publisher.clone());
        flow::send(generator.handle(), destination, realtime.rate, Arc::clone(&ledger)).await?;
        arrive(&ledger).await;
        rows.push(row(peer.name(), "in memory", realtime, &ledger, |_| true));
        running.process.stop().await?;
    }
    println!(
        "\n{} waiters, {} mails a second for {} s, times in ms\n",
        realtime.waiters, realtime.rate, realtime.seconds
    );
    let head = [
        "waiter",
        "how",
        "mails",
        "250 p50",
        "p99",
        "250 to byte p50",
        "p90",
        "p99",
        "max",
        "sent to byte p50",
        "p99",
        "max",
        "missed",
        "repeated",
    ];
    print_table(&head, &rows);
    Ok(())
}

/// What one measurement runs on.
struct Run<'a> {
    realtime: &'a Realtime,
    platform: &'a Platform,
    generator: &'a Generator,
    smtp: SocketAddr,
    http: SocketAddr,
    processes: &'a [&'a Process],
}

impl Run<'_> {
    /// A row a kind. `label` makes its addresses fresh; `first` is the number of its first mail;
    /// `meanwhile` is done when all wait.
    async fn measure<F: Future<Output = anyhow::Result<()>>>(
        &self,
        label: &str,
        how: &str,
        first: usize,
        meanwhile: impl FnOnce() -> F,
    ) -> anyhow::Result<Vec<Vec<String>>> {
        let (realtime, platform) = (self.realtime, self.platform);
        let mails = mails(realtime);
        let ledger = realtime.ledger(first, mails);
        let mut crowd = Crowd::new(self.generator, self.http, Arc::clone(&ledger));
        crowd.gather(realtime.ways(platform, label), GATHER_A_SECOND).await?;
        meanwhile().await?;
        let cpu = || self.processes.iter().map(|process| process.cpu()).collect::<Vec<_>>();
        let (before, postgres) = (cpu(), platform.cluster.cpu());
        let destination = Destination::mail(self.smtp, realtime.addresses(label));
        let handle = self.generator.handle();
        let late = flow::send(handle, destination, realtime.rate, Arc::clone(&ledger)).await?;
        arrive(&ledger).await;
        let used: Vec<String> = cpu()
            .iter()
            .zip(before)
            .map(|(now, before)| (*now - before, mails))
            .chain([(platform.cluster.cpu() - postgres, mails)])
            .map(|(used, mails)| format!("{:.0}", millis(used / mails) * 1e3))
            .collect();
        println!(
            "{how}: CPU us a mail of the roles and Postgres: {}; latest mail {:.1} ms late; strays {}; ended: {}",
            used.join(", "),
            millis(late),
            ledger.strays(),
            crowd.endings()
        );
        let of_kind = |kind: &Kind| {
            row(kind.name(), how, realtime, &ledger, |waiter| realtime.kind_of(waiter) == *kind)
        };
        Ok(realtime.kinds.iter().map(of_kind).collect())
    }
}

/// Mails of one measurement.
fn mails(realtime: &Realtime) -> u32 {
    realtime.rate * (realtime.seconds + WARM_UP)
}

async fn arrive(ledger: &Ledger) {
    let arrived = async {
        while !ledger.is_complete() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // What has not arrived by then is missed.
    tokio::time::timeout(ARRIVE, arrived).await.ok();
}

fn row(
    name: &str,
    how: &str,
    realtime: &Realtime,
    ledger: &Ledger,
    counts: impl Fn(u32) -> bool,
) -> Vec<String> {
    let times = ledger.times((realtime.rate * WARM_UP) as usize, counts);
    let mails = times.in_all.len();
    let [accepted, after, in_all] = [times.accepted, times.after_accepted, times.in_all].map(Latencies::new);
    let text = |duration| format!("{:.1}", millis(duration));
    vec![
        name.to_owned(),
        how.to_owned(),
        mails.to_string(),
        text(accepted.p50()),
        text(accepted.p99()),
        text(after.p50()),
        text(after.quantile(0.9)),
        text(after.p99()),
        text(after.max()),
        text(in_all.p50()),
        text(in_all.p99()),
        text(in_all.max()),
        times.missed.to_string(),
        times.repeated.to_string(),
    ]
}
