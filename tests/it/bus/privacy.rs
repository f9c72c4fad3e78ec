//! What Redis is told.

use std::time::Duration;

use tempmail_bus::{RateKey, SlotKey};

use super::*;

const CANARY: &str = "canary@mail.example";

#[tokio::test]
async fn redis_holds_ids_and_digests_and_nothing_for_ever() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let mut hints = two.subscribe();
    let key = RateKey::of(&[CANARY.as_bytes()]);
    let rate = RateLimit::new("requests", 10, Duration::from_secs(3600));
    let failures = FailureLimit::new("sign-in", 10, Duration::from_secs(3600));
    let tenant = Uuid::new_v4();
    let _held = [
        one.take(SlotKey::AddressWaits { tenant, address: key.as_uuid() }, 1).await.unwrap(),
        one.take(SlotKey::TokenWaits(tenant), 1).await.unwrap(),
    ];
    assert!(one.count(&rate, key).await.allowed);
    let _failed = one.attempt(&failures, key).await.unwrap();
    one.publish(vec![arrival(1)]);
    receive(&mut hints, 1).await;

    let mut keys: Vec<String> = redis.ask(&["KEYS", "*"]);
    keys.sort();
    let (digest, tenant) = (key.as_uuid().simple(), tenant.simple());
    assert_eq!(
        keys,
        [
            format!("{{tempmail}}:failures:sign-in:{digest}"),
            format!("{{tempmail}}:places:address-waits:{tenant}:{digest}"),
            format!("{{tempmail}}:places:token-waits:{tenant}"),
            format!("{{tempmail}}:rate:requests:{digest}"),
            String::from("{tempmail}:sessions"),
        ]
    );
    for key in &keys {
        let left: i64 = redis.ask(&["PTTL", key]);
        assert!(left > 0, "{key} expires");
        let value: Vec<String> = match redis.ask::<String>(&["TYPE", key]).as_str() {
            "zset" => redis.ask(&["ZRANGE", key, "0", "-1"]),
            _ => vec![redis.ask(&["GET", key])],
        };
        for value in value {
            assert!(value.chars().all(|c| c.is_ascii_hexdigit() || c == ':'), "{key}: {value}");
        }
    }
}
