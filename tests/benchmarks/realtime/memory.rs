//! What thousands of idle subscribers cost: memory and processor time of a fresh process for each kind.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tempmail_tests::port::free_port;

use super::delivery_log::DeliveryLog;
use super::peer::Peer;
use super::platform::{ApiProcess, Platform};
use super::pool::{LoadThread, SubscriberPool};
use super::subscriber::Subscription;
use super::{CONNECTS_A_SECOND, Realtime, SubscriberKind};
use crate::measure::print_table;
use crate::process::ServerProcess;

/// Subscribers that come and go first: what is made once is no part of a connection.
pub const WARM_UP: u32 = 200;
/// Pause until everything that an opening needed is given back.
const SETTLE: Duration = Duration::from_secs(1);

/// Of one kind of subscriber.
#[derive(Debug, Clone, Copy)]
struct IdleCost {
    /// Octets of resident memory a subscriber.
    octets: f64,
    /// Share of a core.
    cpu: f64,
}

/// Measures every kind, and peers.
///
/// # Errors
/// A subscriber is refused.
pub async fn run(realtime: &Realtime, platform: &Platform, load_thread: &LoadThread) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut kept = 0.0;
    for kind in [SubscriberKind::Kept].into_iter().chain(realtime.kinds.clone()) {
        let idle = ours(realtime, platform, load_thread, kind).await?;
        if kind == SubscriberKind::Kept {
            kept = idle.octets;
        }
        // A WebSocket is no HTTP connection any more.
        let above =
            matches!(kind, SubscriberKind::LongPoll | SubscriberKind::Stream).then_some(idle.octets - kept);
        rows.push(row(kind.name(), idle, above));
    }
    for peer in realtime.peers() {
        let running = peer.start(platform.directory()).await?;
        let idle = theirs(realtime, load_thread, &peer, &running.process, running.publisher.http).await?;
        running.process.stop().await?;
        rows.push(row(peer.name(), idle, None));
    }
    println!(
        "\n{} idle subscribers of each kind, {} s at rest\n",
        realtime.subscribers, realtime.rest_seconds
    );
    let head = ["subscriber", "octets in all", "above a kept connection", "CPU, % of a core"];
    print_table(&head, &rows);
    Ok(())
}

fn row(name: &str, idle: IdleCost, above: Option<f64>) -> Vec<String> {
    let above = above.map_or("-".into(), |above| format!("{above:.0}"));
    vec![name.to_owned(), format!("{:.0}", idle.octets), above, format!("{:.1}", idle.cpu * 100.0)]
}

async fn ours(
    realtime: &Realtime,
    platform: &Platform,
    load_thread: &LoadThread,
    kind: SubscriberKind,
) -> anyhow::Result<IdleCost> {
    let redis = realtime.redis(platform).await?;
    let api = platform.api(free_port(), redis.as_ref()).await?;
    let subscriptions = |range: Range<u32>| range.map(|number| platform.subscription(kind, number, "idle"));
    let warm = subscriptions(realtime.subscribers..realtime.subscribers + WARM_UP);
    let pool = connect(load_thread, api.http, warm).await?;
    api.wait_for_subscribers(waiting(kind, WARM_UP)).await?;
    drop(pool);
    api.wait_for_subscribers(0).await?;
    let idle = measure(
        realtime,
        load_thread,
        &api.process,
        api.http,
        subscriptions(0..realtime.subscribers),
        Some((&api, kind)),
    );
    let idle = idle.await?;
    api.process.stop().await?;
    Ok(idle)
}

async fn theirs(
    realtime: &Realtime,
    load_thread: &LoadThread,
    peer: &Peer,
    process: &ServerProcess,
    http: SocketAddr,
) -> anyhow::Result<IdleCost> {
    let count = realtime.subscribers;
    drop(connect(load_thread, http, (count..count + WARM_UP).map(|number| peer.subscription(number))).await?);
    tokio::time::sleep(SETTLE).await;
    measure(realtime, load_thread, process, http, (0..count).map(|number| peer.subscription(number)), None)
        .await
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52 octets")]
async fn measure(
    realtime: &Realtime,
    load_thread: &LoadThread,
    process: &ServerProcess,
    server: SocketAddr,
    subscriptions: impl Iterator<Item = Subscription>,
    api: Option<(&ApiProcess, SubscriberKind)>,
) -> anyhow::Result<IdleCost> {
    tokio::time::sleep(SETTLE).await;
    let before = process.memory()?.now;
    let _crowd = connect(load_thread, server, subscriptions).await?;
    if let Some((api, kind)) = api {
        api.wait_for_subscribers(waiting(kind, realtime.subscribers)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let rest = Duration::from_secs(realtime.rest_seconds);
    let cpu = process.cpu();
    tokio::time::sleep(rest).await;
    let cpu = (process.cpu() - cpu).as_secs_f64() / rest.as_secs_f64();
    let grown = process.memory()?.now.saturating_sub(before);
    Ok(IdleCost { octets: grown as f64 / f64::from(realtime.subscribers), cpu })
}

async fn connect(
    load_thread: &LoadThread,
    server: SocketAddr,
    subscriptions: impl Iterator<Item = Subscription>,
) -> anyhow::Result<SubscriberPool> {
    let mut pool = SubscriberPool::new(load_thread, server, Arc::new(DeliveryLog::new(0, [])));
    pool.connect(subscriptions, CONNECTS_A_SECOND).await?;
    Ok(pool)
}

/// Those that the process counts as subscribers.
fn waiting(kind: SubscriberKind, count: u32) -> u32 {
    if kind == SubscriberKind::Kept { 0 } else { count }
}
