//! Passwords are hashed only when they may have changed: hashing is expensive.

use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team, Verb};
use tempmail_tests::wait::eventually;

const HASHES: &str = "tempmail_operator_password_hashes_total";
const MAILBOXES: [&str; 2] = ["one", "two"];

/// Makes the operator reconcile the mailboxes thrice. It has read the Secret of each when this returns, so
/// every earlier reconciliation has ended.
async fn reconcile_thrice(proxy: &ApiProxy, team: &Team) {
    for _ in 0..3 {
        let before = proxy.request_count();
        for name in MAILBOXES {
            team.trigger_reconcile(&format!("mailbox/{name}")).await;
        }
        eventually("the Secrets are read", || async {
            let requests = proxy.requests_since(before);
            let is_read = |name: &&str| {
                let secret = format!("{name}-mailbox");
                let mut reads = requests.iter().filter(|it| it.verb == Verb::Get && it.resource == "secrets");
                reads.any(|it| it.name.as_ref() == Some(&secret))
            };
            MAILBOXES.iter().all(is_read).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_a_password_again_only_when_its_secret_changes() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
    let team = Team::new(&installation.cluster).await;
    let domain = team.domain("sys");
    installation.tempmail(&format!("system-domain add {domain}")).await;
    for name in MAILBOXES {
        team.apply_ready("Mailbox", name, &format!("address: {name}@{domain}")).await;
    }
    let hashes = operator.metric(HASHES).await;
    assert!(hashes >= 2.0, "each password is hashed: {hashes}");

    team.apply("Mailbox", "waits", &format!("address: a@{}", team.domain("never"))).await;
    team.wait_for_reason("mailbox/waits", "Ready", "DomainNotServed").await;
    reconcile_thrice(&proxy, &team).await;
    assert!(operator.metric(HASHES).await <= hashes, "no Secret changed, and a waiting mailbox has none");

    let labels = serde_json::json!({"metadata": {"labels": {"seen": "true"}}});
    team.patch("secret/one-mailbox", &labels).await;
    reconcile_thrice(&proxy, &team).await;
    let compared = operator.metric(HASHES).await - hashes;
    assert!((0.5..1.5).contains(&compared), "the Secret that changed is compared once: {compared}");
}
