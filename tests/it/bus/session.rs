//! Places of processes that end.

use std::time::{Duration, Instant};

use tempmail_bus::PermitKey;

use super::*;

#[tokio::test]
async fn places_of_a_killed_process_are_free_within_six_seconds() {
    let redis = RedisServer::new();
    let (url, key) = (redis.url(), PermitKey::TokenWaits(Uuid::new_v4()));
    // A runtime that is dropped says no more than a process that is killed.
    let killed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let held = killed.spawn(async move {
        let bus = connect(&url).await;
        let held = bus.acquire(key, 1).await.unwrap();
        (bus, held)
    });
    let held = held.await.unwrap();
    let bus = connect(&redis.url()).await;
    assert!(bus.acquire(key, 1).await.is_none());
    killed.shutdown_background();
    let begun = Instant::now();
    eventually("the place is free", || bus.acquire(key, 1)).await.release().await;
    assert!(begun.elapsed() <= Duration::from_secs(6), "{:?}", begun.elapsed());
    drop(held);
}

#[tokio::test]
async fn places_of_a_process_that_lives_stay_taken() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::MailboxSockets(Uuid::new_v4());
    let _held = one.acquire(key, 1).await.unwrap();
    // Longer than a session lives without its beats.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert!(two.acquire(key, 1).await.is_none());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn places_of_a_process_that_left_are_free_at_once() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenStreams(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    one.close().await;
    assert!(two.acquire(key, 1).await.is_some());
    drop(held);
    assert!(one.acquire(key, 1).await.is_some(), "its own calls need no Redis");
    one.close().await;
}

#[tokio::test]
async fn a_bus_that_nobody_has_any_more_ends() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenStreams(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    drop(one);
    assert!(two.acquire(key, 1).await.is_none(), "the place outlives the bus");
    drop(held);
    eventually("its session is over", || async {
        let sessions: usize = redis.query(&["ZCARD", &format!("{PREFIX}:sessions")]);
        (sessions == 1).then_some(())
    })
    .await;
    assert!(two.acquire(key, 1).await.is_some());
}
