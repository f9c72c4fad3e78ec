//! Permit sessions: the permits of processes that end, and of those that do not.

use tokio::runtime::{Builder, Runtime};

use super::*;

/// A runtime that, when it is dropped, sends no more than a process that is killed.
struct Process(Option<Runtime>);

impl Process {
    fn start() -> Self {
        Self(Some(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test]
async fn releases_the_permits_of_a_killed_process() {
    without_reconnections(BusPair::over_redis, async |pair| {
        let key = PermitKey::TokenWaits(Uuid::new_v4());
        let url = pair.redis.as_ref().unwrap().url();
        let process = Process::start();
        let held = process.0.as_ref().unwrap().spawn(async move {
            let bus = connect(&url).await;
            let permit = bus.acquire(key, 1).await.unwrap();
            (bus, permit)
        });
        let held = held.await.unwrap();
        wait_until_refused(&*pair.two, key).await;
        drop(process);
        wait_until_granted(&*pair.two, key).await;
        drop(held);
    })
    .await;
}

#[tokio::test]
async fn keeps_the_permits_of_a_live_process() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::MailboxSockets(Uuid::new_v4());
    let _held = one.acquire(key, 1).await.unwrap();
    // Longer than a session lives without heartbeats, by the server's clock.
    let seconds = || redis.query::<(u64, u64)>(&["TIME"]).0;
    let end = seconds() + 5;
    eventually("a session's life has passed", || async { (seconds() > end).then_some(()) }).await;
    wait_until_refused(&*two, key).await;
}

#[tokio::test]
async fn releases_all_permits_when_the_bus_is_closed() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenStreams(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    one.close().await;
    wait_until_granted(&*two, key).await;
    drop(held);
    assert!(one.acquire(key, 1).await.is_some(), "a closed bus continues by itself");
    one.close().await;
}

#[tokio::test]
async fn ends_the_session_when_bus_and_permits_are_dropped() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenStreams(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    drop(one);
    wait_until_refused(&*two, key).await;
    drop(held);
    eventually("its session has ended", || async {
        let sessions: usize = redis.query(&["ZCARD", &format!("{PREFIX}:sessions")]);
        (sessions == 1).then_some(())
    })
    .await;
    wait_until_granted(&*two, key).await;
}
