//! What Redis learns, and which rights are needed.

use tempmail_bus::RateKey;

use super::*;

const CANARY: &str = "canary@mail.example";

#[tokio::test]
async fn stores_only_ids_and_digests_that_expire() {
    without_reconnections(BusPair::over_redis, async |pair| {
        let (redis, one, two) = (pair.redis.as_ref().unwrap(), &pair.one, &pair.two);
        let mut arrivals = two.subscribe();
        let key = RateKey::from_parts(&[CANARY.as_bytes()]);
        let rate = RateLimit::new("requests", 10, HOUR);
        let failures = FailureLimit::new("sign-in", 10, HOUR);
        let tenant = Uuid::new_v4();
        let _held = [
            one.acquire(PermitKey::AddressWaits { tenant, address: key.as_uuid() }, 1).await.unwrap(),
            one.acquire(PermitKey::TokenWaits(tenant), 1).await.unwrap(),
        ];
        assert!(one.check_rate(&rate, key).await.allowed);
        let _failed = one.begin_attempt(&failures, key).await.unwrap();
        one.publish(vec![arrival(1)]);
        receive(&mut arrivals, 1).await;

        let mut keys: Vec<String> = redis.query(&["KEYS", "*"]);
        keys.sort();
        let (digest, tenant) = (key.as_uuid().simple(), tenant.simple());
        assert_eq!(
            keys,
            [
                format!("{PREFIX}:failures:sign-in:{digest}"),
                format!("{PREFIX}:permits:address-waits:{tenant}:{digest}"),
                format!("{PREFIX}:permits:token-waits:{tenant}"),
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
    })
    .await;
}

#[tokio::test]
async fn separates_installations_that_share_a_redis() {
    let redis = RedisServer::new();
    let (ours, also_ours) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let id = Uuid::new_v4();
    let theirs = RedisBus::connect(&redis.url(), id).await.unwrap();
    let also_theirs = RedisBus::connect(&redis.url(), id).await.unwrap();
    wait_until_connected(&theirs).await;
    wait_until_connected(&also_theirs).await;
    let permit = PermitKey::TokenWaits(Uuid::new_v4());
    let _ours = ours.acquire(permit, 1).await.unwrap();
    assert!(theirs.acquire(permit, 1).await.is_some());
    let key = RateKey::from_parts(&[CANARY.as_bytes()]);
    for bus in [&*ours, &theirs] {
        let rate = RateLimit::new("requests", 1, HOUR);
        assert!(bus.check_rate(&rate, key).await.allowed);
        let failures = FailureLimit::new("sign-in", 1, HOUR);
        assert!(bus.begin_attempt(&failures, key).await.is_ok());
    }
    let (mut our_arrivals, mut their_arrivals) = (also_ours.subscribe(), also_theirs.subscribe());
    publish_until_received(&mut our_arrivals, &*ours).await;
    let published = arrival(2);
    let first = eventually("they receive something", || {
        theirs.publish(vec![published]);
        let batch = their_arrivals.try_recv().ok();
        std::future::ready(batch.and_then(|batch| batch.first().copied()))
    })
    .await;
    assert_eq!(first, published, "they received nothing of ours");
}

/// The command in `docs/operations.md` that creates a user.
fn documented_user() -> Vec<&'static str> {
    let operations = include_str!("../../../docs/operations.md");
    let line = operations.lines().find(|line| line.starts_with("ACL SETUSER tempmail ")).unwrap();
    line.split(' ').collect()
}

#[tokio::test]
async fn needs_only_the_documented_rights() {
    let redis = RedisServer::new();
    let _: String = redis.query(&documented_user());
    let url = redis.url().replace("redis://", "redis://tempmail:password@");
    let (one, two) = (connect(&url).await, connect(&url).await);
    let mut arrivals = two.subscribe();
    let permit = PermitKey::TokenWaits(Uuid::new_v4());
    let held = one.acquire(permit, 1).await.unwrap();
    wait_until_refused(&*two, permit).await;
    held.release().await;
    let key = RateKey::from_parts(&[CANARY.as_bytes()]);
    let rate = RateLimit::new("requests", 10, HOUR);
    assert!(one.check_rate(&rate, key).await.allowed);
    let failures = FailureLimit::new("sign-in", 2, HOUR);
    let first = one.begin_attempt(&failures, key).await.unwrap();
    let second = one.begin_attempt(&failures, key).await.unwrap();
    assert!(one.begin_attempt(&failures, key).await.is_err());
    first.uncount().await;
    second.uncount().await;
    publish_until_received(&mut arrivals, &*one).await;
    let refused: Vec<Vec<redis::Value>> = redis.query(&["ACL", "LOG"]);
    assert!(refused.is_empty(), "{refused:?}");
}
