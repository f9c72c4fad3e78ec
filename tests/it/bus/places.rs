//! Places: how many may wait under one key.

use std::time::Duration;

use tempmail_bus::PermitKey;
use tempmail_tests::RedisProxy;

use super::*;

rules!(
    are_counted_over_all_handles,
    a_place_that_was_given_back_is_free_for_everybody,
    a_place_that_was_dropped_is_free_for_its_own_process,
    a_take_that_was_given_up_holds_nothing,
);

async fn are_counted_over_all_handles(pair: Pair) {
    let id = Uuid::new_v4();
    for key in [
        PermitKey::TokenWaits(id),
        PermitKey::TokenStreams(id),
        PermitKey::MailboxSockets(id),
        PermitKey::AddressWaits { tenant: id, address: id },
        PermitKey::AddressWaits { tenant: id, address: Uuid::new_v4() },
    ] {
        let first = pair.one.acquire(key, 3).await.unwrap();
        let second = pair.two.acquire(key, 3).await.unwrap();
        let third = pair.two.acquire(key, 3).await.unwrap();
        assert!(pair.one.acquire(key, 3).await.is_none(), "{key:?}");
        assert!(pair.two.acquire(key, 3).await.is_none(), "{key:?}");
        second.release().await;
        let fourth = pair.one.acquire(key, 3).await.unwrap();
        assert!(pair.two.acquire(key, 3).await.is_none(), "{key:?}");
        drop((first, third, fourth));
        assert!(pair.one.acquire(key, 0).await.is_none());
        eventually("dropped places are free", || pair.two.acquire(key, 1)).await.release().await;
    }
}

async fn a_place_that_was_given_back_is_free_for_everybody(pair: Pair) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..100 {
        pair.one.acquire(key, 1).await.unwrap().release().await;
        pair.two.acquire(key, 1).await.unwrap().release().await;
    }
}

async fn a_place_that_was_dropped_is_free_for_its_own_process(pair: Pair) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..100 {
        drop(pair.one.acquire(key, 1).await.unwrap());
    }
}

async fn a_take_that_was_given_up_holds_nothing(pair: Pair) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..20 {
        // Polled once: over Redis it is on its way then.
        let given_up = tokio::time::timeout(Duration::ZERO, pair.one.acquire(key, 1)).await;
        drop(given_up);
    }
    eventually("the place is free", || pair.two.acquire(key, 1)).await.release().await;
}

#[tokio::test]
async fn a_place_is_free_everywhere_when_it_is_said_to_be_given_back() {
    let redis = RedisServer::new();
    // The way of one is longer than that of two: two would be first, if one did not wait.
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..100 {
        one.acquire(key, 1).await.unwrap().release().await;
        two.acquire(key, 1).await.unwrap().release().await;
    }
}
