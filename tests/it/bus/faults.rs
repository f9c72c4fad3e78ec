//! Faults of Redis and of the network: the bus continues alone, and recovers.

use futures_util::future::join_all;
use futures_util::join;
use tempmail_bus::RateKey;

use super::*;

/// More permits than fit into one exchange with Redis.
const MANY: usize = 600;

/// Requests that are counted together.
const REQUESTS: u32 = 100;

/// Acquires the only permit of many keys.
async fn acquire_many(bus: &dyn Bus) -> Vec<(PermitKey, tempmail_bus::Permit)> {
    let mut held = Vec::new();
    for _ in 0..MANY {
        let key = PermitKey::MailboxSockets(Uuid::new_v4());
        held.push((key, bus.acquire(key, 1).await.unwrap()));
    }
    held
}

#[tokio::test]
async fn rejects_an_invalid_url_without_quoting_its_password() {
    for url in ["", "redis", "http://user:hush@localhost", "redis://:hush@localhost/x", "redis://user:hush@"]
    {
        let error = RedisBus::connect(url, INSTALLATION).await.err().unwrap().to_string();
        assert!(error.contains("not a URL of Redis") && !error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn starts_without_redis_and_connects_later() {
    let mut redis = RedisServer::new();
    redis.stop();
    let one = RedisBus::connect(&redis.url(), INSTALLATION).await.unwrap();
    let two = RedisBus::connect(&redis.url(), INSTALLATION).await.unwrap();
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    let held = one.acquire(key, 1).await.unwrap();
    assert!(one.acquire(key, 1).await.is_none(), "the process' own limit holds");
    redis.start();
    wait_until_connected(&one).await;
    wait_until_connected(&two).await;
    wait_until_refused(&two, key).await;
    held.release().await;
    wait_until_granted(&two, key).await;
}

#[tokio::test]
async fn limits_each_process_alone_until_redis_is_back() {
    let mut redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let (mut arrivals, mut own) = (two.subscribe(), one.subscribe());
    let mut held = acquire_many(&*one).await;
    redis.kill();
    wait_until_disconnected(&one).await;
    wait_until_disconnected(&two).await;

    let limit = RateLimit::new("test", 2, HOUR);
    let failures = FailureLimit::new("test", 1, HOUR);
    let key = RateKey::from(Uuid::new_v4());
    assert!(one.check_rate(&limit, key).await.allowed && one.check_rate(&limit, key).await.allowed);
    assert!(!one.check_rate(&limit, key).await.allowed);
    let attempt = one.begin_attempt(&failures, key).await.unwrap();
    assert!(one.begin_attempt(&failures, key).await.is_err());
    attempt.uncount().await;
    assert!(one.acquire(held[0].0, 1).await.is_none());
    let also_held = two.acquire(held[0].0, 1).await.unwrap();
    one.publish(vec![arrival(1)]);
    assert_eq!(receive(&mut own, 1).await[0].seq, 1, "its own subscribers receive it");
    let (released, permit) = held.pop().unwrap();
    drop(permit);
    also_held.release().await;

    redis.start();
    wait_until_connected(&one).await;
    wait_until_connected(&two).await;
    for (key, _) in &held {
        wait_until_refused(&*two, *key).await;
    }
    wait_until_granted(&*two, released).await;
    publish_until_received(&mut arrivals, &*one).await;
}

#[tokio::test]
async fn tells_subscribers_that_arrivals_may_be_lost() {
    let mut redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let mut arrivals = bus.subscribe();
    redis.stop();
    redis.start();
    assert!(next_batch(&mut arrivals).await.unwrap().is_empty());
}

#[tokio::test]
async fn restores_permits_that_redis_has_lost() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let held = acquire_many(&*one).await;
    redis.flush();
    let other = PermitKey::TokenStreams(Uuid::new_v4());
    assert!(one.acquire(other, 1).await.is_some(), "acquiring a permit detects the loss");
    for (key, _) in &held {
        wait_until_refused(&*two, *key).await;
    }
    redis.flush();
    // A heartbeat detects the loss.
    wait_until_refused(&*two, held[0].0).await;
}

#[tokio::test]
async fn loads_scripts_again_that_redis_has_lost() {
    without_reconnections(BusPair::over_redis, async |pair| {
        let redis = pair.redis.as_ref().unwrap();
        let bus = &pair.one;
        let (permit, key) = (PermitKey::TokenWaits(Uuid::new_v4()), RateKey::from(Uuid::from_u128(1)));
        let [limit, limit_of_two] = pair.rate_limits(10, HOUR);
        for _ in 0..3 {
            let _: String = redis.query(&["SCRIPT", "FLUSH"]);
            let held = bus.acquire(permit, 1).await.unwrap();
            let _: String = redis.query(&["SCRIPT", "FLUSH"]);
            bus.check_rate(&limit, key).await;
            held.release().await;
        }
        assert_eq!(pair.two.check_rate(&limit_of_two, key).await.remaining, 6, "Redis counted");
    })
    .await;
}

#[tokio::test]
async fn reconnects_when_its_subscription_is_lost() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let mut arrivals = one.subscribe();
    publish_until_received(&mut arrivals, &*two).await;
    proxy.drop_subscriptions();
    publish_until_received(&mut arrivals, &*two).await;
}

#[tokio::test]
async fn reconnects_when_redis_restarts_behind_open_connections() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    let _held = one.acquire(key, 1).await.unwrap();
    let mut arrivals = one.subscribe();
    proxy.keep_clients_on_restart(true);
    redis.kill();
    redis.start();
    publish_until_received(&mut arrivals, &*two).await;
    wait_until_connected(&one).await;
    wait_until_connected(&two).await;
    wait_until_refused(&*two, key).await;
}

#[tokio::test]
async fn reconnects_when_replies_belong_to_other_commands() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let limit = RateLimit::new("test", 1000, HOUR);
    let _: String = redis.query(&["SCRIPT", "FLUSH"]);
    proxy.drop_replies();
    let count = || bus.check_rate(&limit, Uuid::from_u128(1).into());
    let others = async {
        eventually("a reply is dropped", || async { (proxy.dropped_replies() > 0).then_some(()) }).await;
        // Each gets a reply, but that to another command.
        join_all((0..REQUESTS).map(|_| count())).await
    };
    let (first, others) = join!(count(), others);
    assert!(first.allowed && others.iter().all(|decision| decision.allowed));
    wait_until_connected(&bus).await;
    let remaining = bus.check_rate(&limit, Uuid::from_u128(1).into()).await.remaining;
    assert!((1000 - 2 * REQUESTS..1000).contains(&remaining), "{remaining} remain");
    assert!(bus.acquire(PermitKey::TokenWaits(Uuid::new_v4()), 1).await.is_some());
}

#[tokio::test]
async fn delays_one_request_and_not_all_when_redis_hangs() {
    let redis = RedisServer::new();
    let bus = connect(&redis.url()).await;
    let limit = RateLimit::new("test", 1000, HOUR);
    redis.pause();
    assert!(bus.check_rate(&limit, Uuid::from_u128(1).into()).await.allowed);
    assert!(!bus.is_connected(), "the next one does not wait");
    // If each waited for its timeout, these would take longer than a test waits.
    within_deadline("requests are counted without Redis", async {
        for _ in 0..100 {
            assert!(bus.check_rate(&limit, Uuid::from_u128(1).into()).await.allowed);
            let key = PermitKey::TokenWaits(Uuid::new_v4());
            bus.acquire(key, 1).await.unwrap().release().await;
        }
    })
    .await;
    redis.resume();
    wait_until_connected(&bus).await;
}

#[tokio::test]
async fn recovers_when_the_network_is_back() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let bus = connect(&proxy.url()).await;
    let (acquired, released) = (PermitKey::TokenWaits(Uuid::new_v4()), PermitKey::TokenWaits(Uuid::new_v4()));
    let permit = bus.acquire(released, 1).await.unwrap();
    proxy.cut();
    wait_until_disconnected(&bus).await;
    permit.release().await;
    let permit = bus.acquire(acquired, 1).await.unwrap();
    proxy.restore();
    wait_until_connected(&bus).await;
    let other = connect(&redis.url()).await;
    wait_until_refused(&*other, acquired).await;
    wait_until_granted(&*other, released).await;
    permit.release().await;
}
