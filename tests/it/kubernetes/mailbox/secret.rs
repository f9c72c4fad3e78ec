//! Rotation, and Secrets that are deleted, changed or not the operator's.

use serde_json::json;
use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team, Verb, condition_message};
use tempmail_tests::wait::eventually;

use super::MailboxFixture;

/// Waits until the Secret of `box` has another password, and asserts that it is the only valid one.
async fn assert_replaced(fixture: &MailboxFixture, former: &str, jwt: &str) {
    let password = fixture.team.wait_for_another_value("box-mailbox", "password", former).await;
    assert_eq!(password.len(), 32);
    eventually("the new password is accepted", || async {
        (fixture.try_sign_in("box", &password).await.status == 200).then_some(())
    })
    .await;
    fixture.assert_rejected(former, jwt).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotates_the_password_once_for_each_value_of_the_annotation() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.wait_for_event("SecretWritten").await;
    fixture.team.rotate("mailbox/box", "now").await;
    assert_replaced(&fixture, &former, &jwt).await;
    fixture.team.wait_for_event("SecretRotated").await;
    let jwt = fixture.sign_in("box").await;
    fixture.declare("box", "adoptionPolicy: IfUnowned").await;
    fixture.team.wait_for_status("mailbox/box", "observedGeneration", 2).await;
    fixture.messages(&jwt).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_another_password_when_the_secret_is_deleted() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.delete("secret/box-mailbox").await;
    fixture.trigger_reconcile("box").await;
    assert_replaced(&fixture, &former, &jwt).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn never_accepts_a_password_that_a_user_wrote_into_the_secret() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.set_secret_value("box-mailbox", "password", "chosen by a user").await;
    fixture.trigger_reconcile("box").await;
    fixture.team.wait_for_another_value("box-mailbox", "password", "chosen by a user").await;
    assert_replaced(&fixture, &former, &jwt).await;
    fixture.try_sign_in("box", "chosen by a user").await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn restores_the_address_in_the_secret_with_another_password() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.set_secret_value("box-mailbox", "address", "another@inbox.localhost").await;
    fixture.trigger_reconcile("box").await;
    assert_replaced(&fixture, &former, &jwt).await;
    assert_eq!(fixture.team.secret_value("box-mailbox", "address").await, fixture.address("box"));
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_overwrite_a_secret_that_it_did_not_create() {
    let fixture = MailboxFixture::start().await;
    let theirs = fixture.team.create_unowned_secret("theirs").await;
    fixture.declare("box", "secret: {name: theirs}").await;
    let shown = fixture.wait_for_reason("box", "SecretConflict").await;
    let message = condition_message(&shown, "Ready");
    assert!(message.starts_with("The Secret theirs exists"), "{message}");
    assert_eq!(fixture.team.get("secret/theirs").await["data"], theirs["data"]);
    assert_eq!(fixture.accounts().await, json!([]), "a mailbox exists whose password is written nowhere");
    fixture.team.delete("secret/theirs").await;
    fixture.trigger_reconcile("box").await;
    fixture.wait_until_ready("box").await;
    let secret = fixture.team.get("secret/theirs").await;
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "Mailbox");
}

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
