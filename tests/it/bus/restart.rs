//! Redis goes away and comes back.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::join;
use tempmail_bus::{RateKey, SlotKey};
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
        let error = OverRedis::connect(url, INSTALLATION).await.err().unwrap().to_string();
        assert!(error.contains("not a URL of Redis") && !error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn one_that_is_away_at_the_start_is_waited_for() {
    let mut redis = RedisServer::new();
    redis.stop();
    let one = OverRedis::connect(&redis.url(), INSTALLATION).await.unwrap();
    let two = OverRedis::connect(&redis.url(), INSTALLATION).await.unwrap();
    let key = SlotKey::TokenWaits(Uuid::new_v4());
    let held = one.take(key, 1).await.unwrap();
    assert!(one.take(key, 1).await.is_none(), "limits hold in the process");
    redis.start();
    is_well(&one).await;
    is_well(&two).await;
    assert!(two.take(key, 1).await.is_none(), "what was taken before is known");
    held.give_back().await;
    assert!(two.take(key, 1).await.is_some());
}

#[tokio::test]
async fn limits_hold_again_after_a_restart() {
    let mut redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let (mut hints, mut own) = (two.subscribe(), one.subscribe());
    let keys: Vec<SlotKey> = (0..MANY).map(|_| SlotKey::MailboxSockets(Uuid::new_v4())).collect();
    let mut held = Vec::new();
    for &key in &keys {
        held.push(one.take(key, 1).await.unwrap());
    }
    redis.kill();
    is_away(&one).await;
    is_away(&two).await;

    let limit = RateLimit::new("test", 2, Duration::from_secs(3600));
    let failures = FailureLimit::new("test", 1, Duration::from_secs(3600));
    let key = RateKey::from(Uuid::new_v4());
    assert!(one.count(&limit, key).await.allowed && one.count(&limit, key).await.allowed);
    assert!(!one.count(&limit, key).await.allowed, "limits hold in the process");
    let failed = one.attempt(&failures, key).await.unwrap();
    assert!(one.attempt(&failures, key).await.is_err());
    failed.succeeded().await;
    assert!(one.take(keys[0], 1).await.is_none());
    let mine = two.take(keys[0], 1).await.unwrap();
    one.publish(vec![arrival(1)]);
    assert_eq!(receive(&mut own, 1).await[0].seq, 1, "the own process hears");
    held.pop();
    mine.give_back().await;

    redis.start();
    is_well(&one).await;
    is_well(&two).await;
    let free = keys.len() - 1;
    for &key in &keys[..free] {
        assert!(two.take(key, 1).await.is_none());
    }
    assert!(two.take(keys[free], 1).await.is_some(), "what was given back meanwhile is free");
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
    let keys: Vec<SlotKey> = (0..MANY).map(|_| SlotKey::TokenStreams(Uuid::new_v4())).collect();
    let mut held = Vec::new();
    for &key in &keys {
        held.push(one.take(key, 1).await.unwrap());
    }
    redis.flush();
    let other = SlotKey::TokenStreams(Uuid::new_v4());
    assert!(one.take(other, 1).await.is_some(), "a take of the process itself finds it out");
    for &key in &keys {
        assert!(two.take(key, 1).await.is_none());
    }
    redis.flush();
    eventually("a beat finds it out", || async { two.take(keys[0], 1).await.is_none().then_some(()) }).await;
    assert!(one.is_well() && two.is_well());
}

#[tokio::test]
async fn scripts_that_are_lost_are_given_again() {
    let redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let key = SlotKey::TokenWaits(Uuid::new_v4());
    let limit = RateLimit::new("test", 10, Duration::from_secs(3600));
    for _ in 0..3 {
        let _: String = redis.ask(&["SCRIPT", "FLUSH"]);
        let held = bus.take(key, 1).await.unwrap();
        let _: String = redis.ask(&["SCRIPT", "FLUSH"]);
        bus.count(&limit, Uuid::from_u128(1).into()).await;
        held.give_back().await;
    }
    let elsewhere = connect(&redis.url()).await;
    let again = RateLimit::new("test", 10, Duration::from_secs(3600));
    assert_eq!(elsewhere.count(&again, Uuid::from_u128(1).into()).await.remaining, 6, "Redis counted");
    assert!(bus.is_well());
}

#[tokio::test]
async fn a_subscription_that_is_gone_is_found_although_the_connection_lives() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let mut hints = one.subscribe();
    hears(&mut hints, &*two).await;
    proxy.forget_subscriptions();
    hears(&mut hints, &*two).await;
}

#[tokio::test]
async fn a_server_that_restarts_behind_living_connections_is_found() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let key = SlotKey::TokenWaits(Uuid::new_v4());
    let _held = one.take(key, 1).await.unwrap();
    let mut hints = one.subscribe();
    proxy.keep_clients(true);
    redis.kill();
    redis.start();
    hears(&mut hints, &*two).await;
    is_well(&one).await;
    is_well(&two).await;
    eventually("the place is taken again", || async { two.take(key, 1).await.is_none().then_some(()) }).await;
}

#[tokio::test]
async fn a_connection_that_mixes_up_answers_is_left() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let limit = RateLimit::new("test", 1000, Duration::from_secs(3600));
    let _: String = redis.ask(&["SCRIPT", "FLUSH"]);
    proxy.lose_answers();
    let count = || bus.count(&limit, Uuid::from_u128(1).into());
    let others = async {
        eventually("an answer is lost", || async { (proxy.answers_lost() > 0).then_some(()) }).await;
        // Each is answered, though with what is another's.
        join_all((0..REQUESTS).map(|_| count())).await
    };
    let (first, others) = join!(count(), others);
    assert!(first.allowed && others.iter().all(|decision| decision.allowed));
    is_well(&bus).await;
    let remaining = bus.count(&limit, Uuid::from_u128(1).into()).await.remaining;
    assert!((1000 - 2 * REQUESTS..1000).contains(&remaining), "{remaining} remain");
    assert!(bus.take(SlotKey::TokenWaits(Uuid::new_v4()), 1).await.is_some());
}

#[tokio::test]
async fn a_redis_that_hangs_delays_one_request_and_not_all() {
    let redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let limit = RateLimit::new("test", 1000, Duration::from_secs(3600));
    redis.pause();
    let begun = Instant::now();
    assert!(bus.count(&limit, Uuid::from_u128(1).into()).await.allowed);
    assert!(!bus.is_well(), "the next need not wait");
    for _ in 0..100 {
        assert!(bus.count(&limit, Uuid::from_u128(1).into()).await.allowed);
        let key = SlotKey::TokenWaits(Uuid::new_v4());
        bus.take(key, 1).await.unwrap().give_back().await;
    }
    // 500 ms, not 300 times 500 ms.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    redis.resume();
    is_well(&bus).await;
}

#[tokio::test]
async fn a_network_that_is_cut_is_found_and_left_alone() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let (held_key, lost_key) = (SlotKey::TokenWaits(Uuid::new_v4()), SlotKey::TokenWaits(Uuid::new_v4()));
    let lost = bus.take(lost_key, 1).await.unwrap();
    proxy.cut();
    is_away(&bus).await;
    lost.give_back().await;
    let held = bus.take(held_key, 1).await.unwrap();
    proxy.restore();
    is_well(&bus).await;
    let other = connect(&redis.url()).await;
    assert!(other.take(held_key, 1).await.is_none());
    assert!(other.take(lost_key, 1).await.is_some(), "what Redis was not told is known");
    held.give_back().await;
}
