//! Permits: how many requests may be open under one key.

use super::*;

rules!(
    counts_permits_over_all_handles,
    grants_a_released_permit_to_every_process,
    grants_a_dropped_permit_to_its_own_process,
    holds_no_permit_after_an_abandoned_acquire,
);

async fn counts_permits_over_all_handles(pair: &BusPair) {
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
        wait_until_granted(&*pair.two, key).await;
    }
}

async fn grants_a_released_permit_to_every_process(pair: &BusPair) {
    release_by_turns(&*pair.one, &*pair.two).await;
}

async fn grants_a_dropped_permit_to_its_own_process(pair: &BusPair) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..100 {
        drop(pair.one.acquire(key, 1).await.unwrap());
    }
}

async fn holds_no_permit_after_an_abandoned_acquire(pair: &BusPair) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..20 {
        // Polled once: over Redis the operation is queued then.
        let abandoned = tokio::time::timeout(Duration::ZERO, pair.one.acquire(key, 1)).await;
        drop(abandoned);
    }
    wait_until_granted(&*pair.two, key).await;
}

#[tokio::test]
async fn has_released_a_permit_everywhere_when_release_returns() {
    // Commands of one take longer than those of two, which would be first if one did not wait.
    without_reconnections(BusPair::over_proxy, async |pair| {
        release_by_turns(&*pair.one, &*pair.two).await;
    })
    .await;
}

async fn release_by_turns(one: &dyn Bus, two: &dyn Bus) {
    let key = PermitKey::TokenWaits(Uuid::new_v4());
    for _ in 0..100 {
        one.acquire(key, 1).await.unwrap().release().await;
        two.acquire(key, 1).await.unwrap().release().await;
    }
}
