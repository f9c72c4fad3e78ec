//! What thousands of idle waiters cost: memory and processor time of a fresh process for each kind.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tempmail_tests::port::free_port;

use super::client::Way;
use super::crowd::{Crowd, Generator};
use super::ledger::Ledger;
use super::peer::Peer;
use super::platform::{Platform, Pod};
use super::{GATHER_A_SECOND, Kind, Realtime};
use crate::measure::print_table;
use crate::process::Process;

/// Waiters that come and go first: what is made once is no part of a connection.
pub const WARM_UP: u32 = 200;
/// Pause until everything that an opening needed is given back.
const SETTLE: Duration = Duration::from_secs(1);

/// Of one kind of waiter.
#[derive(Debug, Clone, Copy)]
struct Idle {
    /// Octets of resident memory a waiter.
    octets: f64,
    /// Share of a core.
    cpu: f64,
}

/// Measures every kind, and peers.
///
/// # Errors
/// A waiter is refused.
pub async fn run(realtime: &Realtime, platform: &Platform, generator: &Generator) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut kept = 0.0;
    for kind in [Kind::Kept].into_iter().chain(realtime.kinds.clone()) {
        let idle = ours(realtime, platform, generator, kind).await?;
        if kind == Kind::Kept {
            kept = idle.octets;
        }
        // A WebSocket is no HTTP connection any more.
        let above = matches!(kind, Kind::LongPoll | Kind::Stream).then_some(idle.octets - kept);
        rows.push(row(kind.name(), idle, above));
    }
    for peer in realtime.peers() {
        let running = peer.start(platform.directory()).await?;
        let idle = theirs(realtime, generator, &peer, &running.process, running.publisher.http).await?;
        running.process.stop().await?;
        rows.push(row(peer.name(), idle, None));
    }
    println!("\n{} idle waiters of each kind, {} s at rest\n", realtime.waiters, realtime.rest_seconds);
    let head = ["waiter", "octets in all", "above a kept connection", "CPU, % of a core"];
    print_table(&head, &rows);
    Ok(())
}

fn row(name: &str, idle: Idle, above: Option<f64>) -> Vec<String> {
    let above = above.map_or("-".into(), |above| format!("{above:.0}"));
    vec![name.to_owned(), format!("{:.0}", idle.octets), above, format!("{:.1}", idle.cpu * 100.0)]
}

async fn ours(
    realtime: &Realtime,
    platform: &Platform,
    generator: &Generator,
    kind: Kind,
) -> anyhow::Result<Idle> {
    let redis = realtime.redis(platform).await?;
    let pod = platform.api(free_port(), redis.as_ref()).await?;
    let ways = |range: Range<u32>| range.map(|number| platform.way(kind, number, "idle"));
    let warm = ways(realtime.waiters..realtime.waiters + WARM_UP);
    let crowd = gather(generator, pod.http, warm).await?;
    pod.has(waiting(kind, WARM_UP)).await?;
    drop(crowd);
    pod.has(0).await?;
    let idle =
        measure(realtime, generator, &pod.process, pod.http, ways(0..realtime.waiters), Some((&pod, kind)));
    let idle = idle.await?;
    pod.process.stop().await?;
    Ok(idle)
}

async fn theirs(
    realtime: &Realtime,
    generator: &Generator,
    peer: &Peer,
    process: &Process,
    http: SocketAddr,
) -> anyhow::Result<Idle> {
    let count = realtime.waiters;
    drop(gather(generator, http, (count..count + WARM_UP).map(|number| peer.way(number))).await?);
    tokio::time::sleep(SETTLE).await;
    measure(realtime, generator, process, http, (0..count).map(|number| peer.way(number)), None).await
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52 octets")]
async fn measure(
    realtime: &Realtime,
    generator: &Generator,
    process: &Process,
    server: SocketAddr,
    ways: impl Iterator<Item = Way>,
    pod: Option<(&Pod, Kind)>,
) -> anyhow::Result<Idle> {
    tokio::time::sleep(SETTLE).await;
    let before = process.memory()?.now;
    let _crowd = gather(generator, server, ways).await?;
    if let Some((pod, kind)) = pod {
        pod.has(waiting(kind, realtime.waiters)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let rest = Duration::from_secs(realtime.rest_seconds);
    let cpu = process.cpu();
    tokio::time::sleep(rest).await;
    let cpu = (process.cpu() - cpu).as_secs_f64() / rest.as_secs_f64();
    let grown = process.memory()?.now.saturating_sub(before);
    Ok(Idle { octets: grown as f64 / f64::from(realtime.waiters), cpu })
}

async fn gather(
    generator: &Generator,
    server: SocketAddr,
    ways: impl Iterator<Item = Way>,
) -> anyhow::Result<Crowd> {
    let mut crowd = Crowd::new(generator, server, Arc::new(Ledger::new(0, [])));
    crowd.gather(ways, GATHER_A_SECOND).await?;
    Ok(crowd)
}

/// Those that the process counts as waiters.
fn waiting(kind: Kind, count: u32) -> u32 {
    if kind == Kind::Kept { 0 } else { count }
}
