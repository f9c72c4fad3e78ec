//! What Redis is told.

use std::time::Duration;

use tempmail_bus::{PermitKey, RateKey};

use super::*;

const CANARY: &str = "canary@mail.example";

#[tokio::test]
async fn redis_holds_ids_and_digests_and_nothing_for_ever() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let mut hints = two.subscribe();
    let key = RateKey::from_parts(&[CANARY.as_bytes()]);
    let rate = RateLimit::new("requests", 10, Duration::from_secs(3600));
    let failures = FailureLimit::new("sign-in", 10, Duration::from_secs(3600));
    let tenant = Uuid::new_v4();
    let _held = [
        one.acquire(PermitKey::AddressWaits { tenant, address: key.as_uuid() }, 1).await.unwrap(),
        one.acquire(PermitKey::TokenWaits(tenant), 1).await.unwrap(),
    ];
    assert!(one.check_rate(&rate, key).await.allowed);
    let _failed = one.begin_attempt(&failures, key).await.unwrap();
    one.publish(vec![arrival(1)]);
    receive(&mut hints, 1).await;

    let mut keys: Vec<String> = redis.query(&["KEYS", "*"]);
    keys.sort();
    let (digest, tenant) = (key.as_uuid().simple(), tenant.simple());
    assert_eq!(
        keys,
        [
            format!("{PREFIX}:failures:sign-in:{digest}"),
            format!("{PREFIX}:places:address-waits:{tenant}:{digest}"),
            format!("{PREFIX}:places:token-waits:{tenant}"),
            format!("{PREFIX}:rate:requests:{digest}"),
            format!("{PREFIX}:sessions"),
        ]
    );
    for key in &keys {
        let left: i64 = redis.query(&["PTTL", key]);
        assert!(left > 0, "{key} expires");
        let value: Vec<String> = match redis.query::<String>(&["TYPE", key]).as_str() {
            "zset" => redis.query(&["ZRANGE", key, "0", "-1"]),
            _ => vec![redis.query(&["GET", key])],
        };
        for value in value {
            assert!(value.chars().all(|c| c.is_ascii_hexdigit() || c == ':'), "{key}: {value}");
        }
    }
}

#[tokio::test]
async fn installations_that_share_a_redis_know_nothing_of_each_other() {
    let redis = RedisServer::new();
    let (ours, also_ours) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let id = Uuid::new_v4();
    let theirs = RedisBus::connect(&redis.url(), id).await.unwrap();
    let also_theirs = RedisBus::connect(&redis.url(), id).await.unwrap();
    is_connected(&theirs).await;
    is_connected(&also_theirs).await;
    let place = PermitKey::TokenWaits(Uuid::new_v4());
    let _ours = ours.acquire(place, 1).await.unwrap();
    assert!(theirs.acquire(place, 1).await.is_some());
    let key = RateKey::from_parts(&[CANARY.as_bytes()]);
    for bus in [&*ours, &theirs] {
        let rate = RateLimit::new("requests", 1, Duration::from_secs(3600));
        assert!(bus.check_rate(&rate, key).await.allowed);
        let failures = FailureLimit::new("sign-in", 1, Duration::from_secs(3600));
        assert!(bus.begin_attempt(&failures, key).await.is_ok());
    }
    let (mut our_hints, mut their_hints) = (also_ours.subscribe(), also_theirs.subscribe());
    hears(&mut our_hints, &*ours).await;
    let wanted = arrival(2);
    theirs.publish(vec![wanted]);
    assert_eq!(receive(&mut their_hints, 1).await, [wanted], "what came before was not theirs");
}

/// The line of `docs/operations.md` that makes a user.
fn documented_user() -> Vec<&'static str> {
    let operations = include_str!("../../../docs/operations.md");
    let line = operations.lines().find(|line| line.starts_with("ACL SETUSER tempmail ")).unwrap();
    line.split(' ').collect()
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let redis = RedisServer::new();
    let _: String = redis.query(&documented_user());
    let url = redis.url().replace("redis://", "redis://tempmail:password@");
    let (one, two) = (connect(&url).await, connect(&url).await);
    let mut hints = two.subscribe();
    let place = PermitKey::TokenWaits(Uuid::new_v4());
    let held = one.acquire(place, 1).await.unwrap();
    assert!(two.acquire(place, 1).await.is_none());
    held.release().await;
    let key = RateKey::from_parts(&[CANARY.as_bytes()]);
    let rate = RateLimit::new("requests", 10, Duration::from_secs(3600));
    assert!(one.check_rate(&rate, key).await.allowed);
    let failures = FailureLimit::new("sign-in", 2, Duration::from_secs(3600));
    let first = one.begin_attempt(&failures, key).await.unwrap();
    let second = one.begin_attempt(&failures, key).await.unwrap();
    assert!(one.begin_attempt(&failures, key).await.is_err());
    first.record_success().await;
    second.record_success().await;
    one.publish(vec![arrival(1)]);
    receive(&mut hints, 1).await;
    assert!(one.is_connected() && two.is_connected());
    let refused: Vec<Vec<redis::Value>> = redis.query(&["ACL", "LOG"]);
    assert!(refused.is_empty(), "{refused:?}");
}
