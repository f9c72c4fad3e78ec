//! How long a mail takes from its sender to the one who waits for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tempmail_tests::port::free_port;

use super::delivery_log::DeliveryLog;
use super::flow::{self, Destination};
use super::platform::Platform;
use super::pool::{LoadThread, SubscriberPool};
use super::{CONNECTS_A_SECOND, Realtime, SubscriberKind};
use crate::measure::{Latencies, millis, print_table};
use crate::process::ServerProcess;

/// Seconds of mail whose times are not counted.
const WARM_UP: u32 = 2;
/// How long the last mails may take.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(15);

/// Measures with the bus of the roles, while Redis is unavailable, and peers.
///
/// # Errors
/// A subscriber or a mail is refused.
pub async fn run(realtime: &Realtime, platform: &Platform, load_thread: &LoadThread) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    match realtime.redis(platform).await? {
        None => {
            let (api, smtp) = platform.up().await?;
            let run =
                Run { realtime, platform, load_thread, smtp, http: api.http, processes: &[&api.process] };
            rows.extend(run.measure("up", "one process", 1, || async { Ok(()) }).await?);
            api.wait_for_subscribers(0).await?;
            api.process.stop().await?;
        }
        Some(redis) => {
            let api = platform.api(free_port(), Some(&redis)).await?;
            let (ingest, smtp) = platform.ingest(Some(&redis)).await?;
            let processes = [&api.process, &ingest];
            let run = Run { realtime, platform, load_thread, smtp, http: api.http, processes: &processes };
            rows.extend(run.measure("redis", "Redis between", 1, || async { Ok(()) }).await?);
            api.wait_for_subscribers(0).await?;
            let kill = || redis.process.kill();
            rows.extend(run.measure("away", "Redis away", 1 + mails(realtime) as usize, kill).await?);
            api.process.stop().await?;
            ingest.stop().await?;
        }
    }
    for peer in realtime.peers() {
        let running = peer.start(platform.directory()).await?;
        let delivery_log = realtime.delivery_log(1, mails(realtime));
        let server = running.publisher.http;
        let mut pool = SubscriberPool::new(load_thread, server, Arc::clone(&delivery_log));
        pool.connect((0..realtime.subscribers).map(|number| peer.subscription(number)), CONNECTS_A_SECOND)
            .await?;
        let destination = Destination::Publication(running.publisher.clone());
        flow::send(load_thread.handle(), destination, realtime.rate, Arc::clone(&delivery_log)).await?;
        wait_for_delivery(&delivery_log).await;
        rows.push(row(peer.name(), "in memory", realtime, &delivery_log, |_| true));
        running.process.stop().await?;
    }
    println!(
        "\n{} subscribers, {} mails a second for {} s, times in ms\n",
        realtime.subscribers, realtime.rate, realtime.seconds
    );
    let head = [
        "subscriber",
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
    load_thread: &'a LoadThread,
    smtp: SocketAddr,
    http: SocketAddr,
    processes: &'a [&'a ServerProcess],
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
        let delivery_log = realtime.delivery_log(first, mails);
        let mut pool = SubscriberPool::new(self.load_thread, self.http, Arc::clone(&delivery_log));
        pool.connect(realtime.subscriptions(platform, label), CONNECTS_A_SECOND).await?;
        meanwhile().await?;
        let cpu = || self.processes.iter().map(|process| process.cpu()).collect::<Vec<_>>();
        let (before, postgres) = (cpu(), platform.cluster.cpu());
        let destination = Destination::mail(self.smtp, realtime.addresses(label));
        let handle = self.load_thread.handle();
        let late = flow::send(handle, destination, realtime.rate, Arc::clone(&delivery_log)).await?;
        wait_for_delivery(&delivery_log).await;
        let used: Vec<String> = cpu()
            .iter()
            .zip(before)
            .map(|(now, before)| (*now - before, mails))
            .chain([(platform.cluster.cpu() - postgres, mails)])
            .map(|(used, mails)| format!("{:.0}", millis(used / mails) * 1e3))
            .collect();
        println!(
            "{how}: CPU us a mail of the roles and Postgres: {}; latest mail {:.1} ms late; misdelivered {}; disconnects: {}",
            used.join(", "),
            millis(late),
            delivery_log.misdelivered(),
            pool.disconnects()
        );
        let of_kind = |kind: &SubscriberKind| {
            row(kind.name(), how, realtime, &delivery_log, |subscriber| realtime.kind_of(subscriber) == *kind)
        };
        Ok(realtime.kinds.iter().map(of_kind).collect())
    }
}

/// Mails of one measurement.
fn mails(realtime: &Realtime) -> u32 {
    realtime.rate * (realtime.seconds + WARM_UP)
}

async fn wait_for_delivery(delivery_log: &DeliveryLog) {
    // Mails that have not arrived by then are counted as missed.
    tokio::time::timeout(DELIVERY_TIMEOUT, delivery_log.completed()).await.ok();
}

fn row(
    name: &str,
    how: &str,
    realtime: &Realtime,
    delivery_log: &DeliveryLog,
    counts: impl Fn(u32) -> bool,
) -> Vec<String> {
    let times = delivery_log.times((realtime.rate * WARM_UP) as usize, counts);
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
