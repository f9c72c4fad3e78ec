//! Addresses that a Mailbox may have.

use serde_json::Value;
use tempmail_tests::kubernetes::{Team, assert_conditions, condition_message};

use super::MailboxFixture;

/// The message of the condition Accepted, which is `False`.
fn rejection(object: &Value) -> String {
    assert_conditions(object, &[("Accepted", "False")]);
    condition_message(object, "Accepted").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_every_taken_address_with_the_same_message() {
    let fixture = MailboxFixture::start().await;
    let another = Team::new(fixture.installation.cluster).await;
    let theirs = fixture.pro_token(&another).await;
    let free = fixture.create_over_http("free", None).await.expect(201);
    fixture.create_over_http("theirs", Some(&theirs)).await.expect(201);
    let reserved = fixture.create_over_http("held", None).await.expect(201);
    let jwt = |made: &Value| made["token"].as_str().expect("a JWT").to_owned();
    let deletion = fixture.installation.request(reqwest::Method::DELETE, "/api/me").bearer(&jwt(&reserved));
    assert_eq!(deletion.send().await.status, 204);
    let mut messages = Vec::new();
    for name in ["free", "theirs", "held"] {
        fixture.declare(name, "adoptionPolicy: IfUnowned").await;
        let shown = fixture.wait_for_reason(name, "AddressTaken").await;
        assert_eq!(shown["status"]["mailboxId"], Value::Null);
        messages.push(rejection(&shown));
        let secret = fixture.team.get_opt(&format!("secret/{name}-mailbox")).await;
        assert!(secret.is_none(), "a password is written");
    }
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:?}");
    for name in ["free", "theirs"] {
        fixture.try_sign_in(name, "correct horse").await.expect(200);
    }
    // The deletion of a refused object does not touch the mailbox at the address.
    fixture.team.delete("mailbox/free").await;
    fixture.messages(&jwt(&free)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopts_a_mailbox_of_the_tenant_only_if_the_spec_says_so() {
    let fixture = MailboxFixture::start().await;
    let pro = fixture.pro_token(&fixture.team).await;
    let made = fixture.create_over_http("box", Some(&pro)).await.expect(201);
    let jwt = made["token"].as_str().expect("a JWT");
    fixture.deliver("box", "before").await;
    fixture.declare("box", "").await;
    fixture.wait_for_reason("box", "ExistsUnmanaged").await;
    fixture.messages(jwt).await.expect(200);
    let shown = fixture.declare_ready("box", "adoptionPolicy: IfUnowned").await;
    assert_eq!(shown["status"]["mailboxId"], made["id"]);
    let event = fixture.team.wait_for_event_about("mailbox/box", "Adopted").await;
    assert!(event.starts_with("Adopted the mailbox at spec.address, "), "{event}");
    fixture.assert_rejected("correct horse", jwt).await;
    fixture.assert_only_mail(&fixture.sign_in("box").await, "before").await;
    // A second object does not adopt it.
    let spec = format!("address: {}, adoptionPolicy: IfUnowned", fixture.address("box"));
    fixture.team.apply("Mailbox", "second", &spec).await;
    fixture.wait_for_reason("second", "AddressTaken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_until_the_domain_is_served() {
    let fixture = MailboxFixture::start().await;
    let domain = fixture.team.domain("later");
    fixture.team.apply("Mailbox", "box", &format!("address: a@{domain}")).await;
    let shown = fixture.wait_for_reason("box", "DomainNotServed").await;
    assert_conditions(&shown, &[("Reconciling", "True")]);
    fixture.installation.tempmail(&format!("system-domain add {domain}")).await;
    fixture.trigger_reconcile("box").await;
    fixture.wait_until_ready("box").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_an_address_at_the_domain_of_another_tenant() {
    let fixture = MailboxFixture::start().await;
    let another = Team::new(fixture.installation.cluster).await;
    let custom = another.domain("mail");
    fixture.installation.insert_verified_domain(&another, &custom).await;
    fixture.team.apply("Mailbox", "foreign", &format!("address: a@{custom}")).await;
    fixture.wait_for_reason("foreign", "DomainNotServed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_domain_that_is_not_served_any_longer() {
    let fixture = MailboxFixture::start().await;
    let custom = fixture.team.domain("mail");
    fixture.installation.insert_verified_domain(&fixture.team, &custom).await;
    // Local parts are reserved only on system domains.
    fixture.team.apply_ready("Mailbox", "box", &format!("address: postmaster@{custom}")).await;
    fixture.installation.stop_serving_domain(&custom).await;
    fixture.trigger_reconcile("box").await;
    let shown = fixture.wait_for_reason("box", "DomainNotServed").await;
    assert_conditions(&shown, &[("Accepted", "True"), ("Reconciling", "True")]);
    fixture.installation.serve_domain(&custom).await;
    fixture.trigger_reconcile("box").await;
    fixture.wait_until_ready("box").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_reserved_local_part() {
    let fixture = MailboxFixture::start().await;
    fixture.team.apply("Mailbox", "reserved", &format!("address: {}", fixture.address("postmaster"))).await;
    let message = rejection(&fixture.wait_for_reason("reserved", "InvalidSpec").await);
    assert!(message.contains("reserved on system domains"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_mailbox_beyond_the_limit() {
    let fixture = MailboxFixture::with_tenant("limits: {mailboxes: 1}").await;
    fixture.declare_ready("first", "").await;
    fixture.declare("second", "").await;
    let message = rejection(&fixture.wait_for_reason("second", "QuotaExceeded").await);
    assert!(message.starts_with("1 of 1 mailboxes of tenant "), "{message}");
    fixture.team.delete("mailbox/first").await;
    fixture.trigger_reconcile("second").await;
    fixture.wait_until_ready("second").await;
}

mod chaos {
    use super::super::MailboxFixture;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: takes 1 minute"]
    async fn reconciles_a_waiting_mailbox_every_minute() {
        let fixture = MailboxFixture::start().await;
        let domain = fixture.team.domain("later");
        fixture.team.apply("Mailbox", "box", &format!("address: a@{domain}")).await;
        fixture.wait_for_reason("box", "DomainNotServed").await;
        fixture.installation.tempmail(&format!("system-domain add {domain}")).await;
        fixture.wait_until_ready("box").await;
    }
}
