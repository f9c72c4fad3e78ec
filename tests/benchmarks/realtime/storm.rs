//! A reconnect storm: all subscribers lose their process at once and reconnect to the next one, while mail
//! flows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempmail_tests::port::free_port;

use super::flow::{self, Destination};
use super::platform::Platform;
use super::pool::{LoadThread, SubscriberPool};
use super::{CONNECTS_A_SECOND, Realtime};
use crate::measure::print_table;

/// Mails a second meanwhile.
const RATE: u32 = 200;
/// Seconds that they flow, from before the storm until after it.
const SECONDS: u32 = 30;
/// How long they flow before the storm.
const BEFORE: Duration = Duration::from_secs(3);
/// How long it may take until all wait again.
const BACK: Duration = Duration::from_secs(120);
/// The numbers of mails of other measurements are below.
const FIRST: usize = 100_000_000;

/// Kills `tempmail api`, starts it again, and waits until all subscribers are back.
///
/// # Errors
/// Not all subscribers come back, or a mail is refused.
pub async fn run(realtime: &Realtime, platform: &Platform, load_thread: &LoadThread) -> anyhow::Result<()> {
    let redis = realtime.redis(platform).await?;
    let api = platform.api(free_port(), redis.as_ref()).await?;
    let (ingest, smtp) = platform.ingest(redis.as_ref()).await?;
    let delivery_log = realtime.delivery_log(FIRST, RATE * SECONDS);
    let mut pool = SubscriberPool::new(load_thread, api.http, Arc::clone(&delivery_log));
    pool.connect(realtime.subscriptions(platform, "storm"), CONNECTS_A_SECOND).await?;
    api.wait_for_subscribers(realtime.subscribers).await?;
    let (handle, kept) = (load_thread.handle().clone(), Arc::clone(&delivery_log));
    let destination = Destination::mail(smtp, realtime.addresses("storm"));
    let flow = tokio::spawn(async move { flow::send(&handle, destination, RATE, kept).await });
    tokio::time::sleep(BEFORE).await;

    let http = api.http;
    api.process.kill().await?;
    let started = Instant::now();
    let api = platform.spawn_api(http, redis.as_ref())?;
    let mut ready = None;
    let back = async {
        loop {
            if ready.is_none() && api.is_ready().await {
                ready = Some(started.elapsed());
            }
            if ready.is_some() && api.subscribers().await? >= realtime.subscribers {
                return anyhow::Ok(started.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let back = tokio::time::timeout(BACK, back).await;
    let disconnects = pool.disconnects();
    flow.await??;
    tokio::time::timeout(Duration::from_secs(15), delivery_log.completed()).await.ok();
    let seconds =
        |span: Option<Duration>| span.map_or("-".into(), |span| format!("{:.2}", span.as_secs_f64()));
    let back = back.ok().transpose()?;
    println!(
        "\n{} subscribers lose `tempmail api` and come back to the next one, {RATE} mails a second meanwhile\n\n\
         ready after {} s, all back after {} s, at the peak {} MB; disconnects: {disconnects}\n",
        realtime.subscribers,
        seconds(ready),
        seconds(back),
        api.process.memory()?.peak >> 20,
    );
    let rows: Vec<Vec<String>> = realtime
        .kinds
        .iter()
        .map(|kind| {
            let times = delivery_log.times(0, |subscriber| realtime.kind_of(subscriber) == *kind);
            let mails = times.in_all.len() + times.missed;
            vec![kind.name().into(), mails.to_string(), times.missed.to_string(), times.repeated.to_string()]
        })
        .collect();
    print_table(&["subscriber", "mails", "missed", "repeated"], &rows);
    drop(pool);
    api.process.stop().await?;
    ingest.stop().await
}
