//! Secrets of objects at rest: each is looked at within five minutes, and none all the time.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use tempmail_tests::kubernetes::{ApiProxy, Installation, Team, Verb};
use tempmail_tests::wait::eventually;

/// Objects with a Secret.
const OBJECTS: usize = 10;

/// How often each Secret was read after the first `count` requests.
fn reads_since(proxy: &ApiProxy, count: usize) -> BTreeMap<String, usize> {
    let mut reads = BTreeMap::new();
    for request in proxy.requests_since(count) {
        if request.resource == "secrets" && request.verb == Verb::Get {
            *reads.entry(request.name.expect("a name")).or_default() += 1;
        }
    }
    reads
}

/// Returns when the operator has renewed its lease some times, so that everything that it does all the time is done.
async fn wait_for_renewals(proxy: &ApiProxy) {
    let renewals = || proxy.requests().iter().filter(|it| it.resource == "leases" && it.is_write()).count();
    let expected = renewals() + 6;
    eventually("the lease is renewed", || async { (renewals() >= expected).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_each_secret_once_in_five_minutes_and_at_once_after_a_change_of_its_object() {
    let mut installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    installation.app.clock.pause();
    installation.app.start_operator_with(proxy.client(), |config| config.operator.secret_check_seconds = 300);
    let team = Team::new(&installation.cluster).await;
    for index in 0..OBJECTS {
        team.apply_ready("ApiToken", &format!("token-{index}"), "type: Live").await;
    }

    // What follows the creation of the last one is done, too.
    wait_for_renewals(&proxy).await;
    let count = proxy.request_count();
    team.rotate("apitoken/token-0", "now").await;
    wait_for_renewals(&proxy).await;
    let reads = reads_since(&proxy, count);
    assert_eq!(reads.keys().collect::<Vec<_>>(), ["token-0-token"], "{reads:?}");

    for _ in 0..2 {
        let count = proxy.request_count();
        installation.app.clock.advance(SignedDuration::from_mins(5));
        eventually("each Secret is looked at", || async {
            (reads_since(&proxy, count).len() == OBJECTS).then_some(())
        })
        .await;
        wait_for_renewals(&proxy).await;
        let reads = reads_since(&proxy, count);
        assert!(reads.values().all(|times| *times == 1), "{reads:?}");
    }

    team.delete("secret/token-1-token").await;
    installation.app.clock.advance(SignedDuration::from_mins(5));
    team.wait_until_created("secret/token-1-token").await;
}
