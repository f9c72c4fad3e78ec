//! What a mailbox costs that has settled.

use tempmail_tests::kubernetes::{ApiProxy, OperatorProcess, Team, Verb, World};
use tempmail_tests::wait::eventually;

const HASHES: &str = "tempmail_operator_password_hashes_total";

/// Has an operator look at these mailboxes, and returns when it has read the Secret of each: it has ended
/// every earlier look by then.
async fn look(proxy: &ApiProxy, team: &Team<'_>, names: &[&str]) {
    let asked = proxy.asked();
    for name in names {
        let (object, seen) = (format!("mailbox/{name}"), format!("test={}", uuid::Uuid::new_v4()));
        team.kubectl(&["annotate", "--overwrite", &object, &seen]).await.expect("it is there");
    }
    eventually("the Secrets are read", || async {
        let requests = proxy.requests();
        let is_read = |name: &&str| {
            let secret = format!("{name}-mailbox");
            requests[asked..].iter().any(|it| {
                it.verb == Verb::Get && it.resource == "secrets" && it.name.as_ref() == Some(&secret)
            })
        };
        names.iter().all(is_read).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_hashed_again_only_when_its_secret_changed() {
    let world = World::without_operator().await;
    let proxy = ApiProxy::start(&world.cluster).await;
    let operator = OperatorProcess::start(&world.app, &proxy.kubeconfig()).await;
    operator.comes_to_lead().await;
    let team = Team::with(&world.cluster, "").await;
    let domain = team.domain("sys");
    world.app.tempmail(&format!("system-domain add {domain}")).await.success();
    let names = ["one", "two"];
    for name in names {
        team.apply("Mailbox", name, &format!("address: {name}@{domain}")).await.expect("it is taken");
        team.wait(&format!("mailbox/{name}"), "Ready").await;
    }
    let hashed = operator.metric(HASHES).await;
    assert!(hashed >= 2.0, "each password is hashed: {hashed}");
    let unserved = format!("address: a@{}", team.domain("never"));
    team.apply("Mailbox", "waits", &unserved).await.expect("it is taken");
    team.wait_for_reason("mailbox/waits", "Ready", "DomainNotServed").await;
    for _ in 0..3 {
        look(&proxy, &team, &names).await;
    }
    assert!(operator.metric(HASHES).await <= hashed, "nothing changed, and what waits has no password");
    team.kubectl(&["label", "secret", "one-mailbox", "seen=true"]).await.expect("it is there");
    for _ in 0..3 {
        look(&proxy, &team, &names).await;
    }
    let compared = operator.metric(HASHES).await - hashed;
    assert!((0.5..1.5).contains(&compared), "the Secret that changed is compared once: {compared}");
}
