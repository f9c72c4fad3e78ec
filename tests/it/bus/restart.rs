//! Redis goes away and comes back.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::join;
use tempmail_bus::{PermitKey, RateKey};
use tempmail_tests::RedisProxy;

use super::*;

/// More places than Redis is told of together.
const MANY: usize = 600;

/// Requests that come together.
const REQUESTS: u32 = 100;

#[tokio::test]
async fn a_wrong_url_is_refused_without_its_password() {
    for url in ["", "redis", "http://user:hush@localhost", "redis://:hush@localhost/x", "redis://user:hush@"]
    {
        let error = RedisBus::connect(url, INSTALLATION).await.err().unwrap().to_string();
        assert!(error.contains("not a URL of Redis") && !error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn one_that_is_away_at_the_start_is_waited_for() {
    let mut redis = RedisServer::new();
    redis.stop();
    let one = RedisBus::connect(&redis.url(), INSTALLATION).await.unwrap();
    let two = RedisBus::connect(&redis.url(), INSTALLATION).await.unwrap();
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    assert!(one.acquire(key, 1).await.is_none(), "limits hold in the process");
    redis.start();
    is_connected(&one).await;
    is_connected(&two).await;
    assert!(two.acquire(key, 1).await.is_none(), "what was taken before is known");
    held.release().await;
    assert!(two.acquire(key, 1).await.is_some());
}

#[tokio::test]
async fn limits_hold_again_after_a_restart() {
    let mut redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let (mut hints, mut own) = (two.subscribe(), one.subscribe());
    let keys: Vec<PermitKey> = (0..MANY).map(|_| PermitKey::MailboxSockets(Uuid::new_v4())).collect();
    let mut held = Vec::new();
    for &key in &keys {
        held.push(one.acquire(key, 1).await.unwrap());
    }
    redis.kill();
    is_disconnected(&one).await;
    is_disconnected(&two).await;

    let limit = RateLimit::new("test", 2, Duration::from_secs(3600));
    let failures = FailureLimit::new("test", 1, Duration::from_secs(3600));
    let key = RateKey::from(Uuid::new_v4());
    assert!(one.check_rate(&limit, key).await.allowed && one.check_rate(&limit, key).await.allowed);
    assert!(!one.check_rate(&limit, key).await.allowed, "limits hold in the process");
    let failed = one.begin_attempt(&failures, key).await.unwrap();
    assert!(one.begin_attempt(&failures, key).await.is_err());
    failed.record_success().await;
    assert!(one.acquire(keys[0], 1).await.is_none());
    let mine = two.acquire(keys[0], 1).await.unwrap();
    one.publish(vec![arrival(1)]);
    assert_eq!(receive(&mut own, 1).await[0].seq, 1, "the own process hears");
    held.pop();
    mine.release().await;

    redis.start();
    is_connected(&one).await;
    is_connected(&two).await;
    let free = keys.len() - 1;
    for &key in &keys[..free] {
        assert!(two.acquire(key, 1).await.is_none());
    }
    assert!(two.acquire(keys[free], 1).await.is_some(), "what was given back meanwhile is free");
    hears(&mut hints, &*one).await;
}

#[tokio::test]
async fn subscribers_are_told_that_they_may_have_missed_some() {
    let mut redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let mut hints = bus.subscribe();
    redis.stop();
    redis.start();
    assert!(next(&mut hints).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_emptied_redis_knows_the_places_again() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let keys: Vec<PermitKey> = (0..MANY).map(|_| PermitKey::TokenStreams(Uuid::new_v4())).collect();
    let mut held = Vec::new();
    for &key in &keys {
        held.push(one.acquire(key, 1).await.unwrap());
    }
    redis.flush();
    let other = PermitKey::TokenStreams(Uuid::new_v4());
    assert!(one.acquire(other, 1).await.is_some(), "a take of the process itself finds it out");
    for &key in &keys {
        assert!(two.acquire(key, 1).await.is_none());
    }
    redis.flush();
    eventually("a beat finds it out", || async { two.acquire(keys[0], 1).await.is_none().then_some(()) })
        .await;
    assert!(one.is_connected() && two.is_connected());
}

#[tokio::test]
async fn scripts_that_are_lost_are_given_again() {
    let redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    let limit = RateLimit::new("test", 10, Duration::from_secs(3600));
    for _ in 0..3 {
        let _: String = redis.query(&["SCRIPT", "FLUSH"]);
        let held = bus.acquire(key, 1).await.unwrap();
        let _: String = redis.query(&["SCRIPT", "FLUSH"]);
        bus.check_rate(&limit, Uuid::from_u128(1).into()).await;
        held.release().await;
    }
    let elsewhere = connect(&redis.url()).await;
    let again = RateLimit::new("test", 10, Duration::from_secs(3600));
    assert_eq!(elsewhere.check_rate(&again, Uuid::from_u128(1).into()).await.remaining, 6, "Redis counted");
    assert!(bus.is_connected());
}

#[tokio::test]
async fn a_subscription_that_is_gone_is_found_although_the_connection_lives() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let mut hints = one.subscribe();
    hears(&mut hints, &*two).await;
    proxy.drop_subscriptions();
    hears(&mut hints, &*two).await;
}

#[tokio::test]
async fn a_server_that_restarts_behind_living_connections_is_found() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    let _held = one.acquire(key, 1).await.unwrap();
    let mut hints = one.subscribe();
    proxy.keep_clients_on_restart(true);
    redis.kill();
    redis.start();
    hears(&mut hints, &*two).await;
    is_connected(&one).await;
    is_connected(&two).await;
    eventually("the place is taken again", || async { two.acquire(key, 1).await.is_none().then_some(()) })
        .await;
}

#[tokio::test]
async fn a_connection_that_mixes_up_answers_is_left() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let limit = RateLimit::new("test", 1000, Duration::from_secs(3600));
    let _: String = redis.query(&["SCRIPT", "FLUSH"]);
    proxy.drop_replies();
    let count = || bus.check_rate(&limit, Uuid::from_u128(1).into());
    let others = async {
        eventually("an answer is lost", || async { (proxy.dropped_replies() > 0).then_some(()) }).await;
        // Each is answered, though with what is another's.
        join_all((0..REQUESTS).map(|_| count())).await
    };
    let (first, others) = join!(count(), others);
    assert!(first.allowed && others.iter().all(|decision| decision.allowed));
    is_connected(&bus).await;
    let remaining = bus.check_rate(&limit, Uuid::from_u128(1).into()).await.remaining;
    assert!((1000 - 2 * REQUESTS..1000).contains(&remaining), "{remaining} remain");
    assert!(bus.acquire(PermitKey::TokenWaits(Uuid::new_v4()), 1).await.is_some());
}

#[tokio::test]
async fn a_redis_that_hangs_delays_one_request_and_not_all() {
    let redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let limit = RateLimit::new("test", 1000, Duration::from_secs(3600));
    redis.pause();
    let begun = Instant::now();
    assert!(bus.check_rate(&limit, Uuid::from_u128(1).into()).await.allowed);
    assert!(!bus.is_connected(), "the next need not wait");
    for _ in 0..100 {
        assert!(bus.check_rate(&limit, Uuid::from_u128(1).into()).await.allowed);
        let key = PermitKey::TokenWaits(Uuid::new_v4());
        bus.acquire(key, 1).await.unwrap().release().await;
    }
    // 500 ms, not 300 times 500 ms.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    redis.resume();
    is_connected(&bus).await;
}

#[tokio::test]
async fn a_network_that_is_cut_is_found_and_left_alone() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let (held_key, lost_key) = (PermitKey::TokenWaits(Uuid::new_v4()), PermitKey::TokenWaits(Uuid::new_v4()));
    let lost = bus.acquire(lost_key, 1).await.unwrap();
    proxy.cut();
    is_disconnected(&bus).await;
    lost.release().await;
    let held = bus.acquire(held_key, 1).await.unwrap();
    proxy.restore();
    is_connected(&bus).await;
    let other = connect(&redis.url()).await;
    assert!(other.acquire(held_key, 1).await.is_none());
    assert!(other.acquire(lost_key, 1).await.is_some(), "what Redis was not told is known");
    held.release().await;
}
