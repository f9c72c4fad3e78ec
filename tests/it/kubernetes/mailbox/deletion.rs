//! Deletion of Mailboxes.

use reqwest::Method;
use serde_json::json;

use super::MailboxFixture;

#[tokio::test(flavor = "multi_thread")]
async fn deletes_the_mail_and_reserves_the_address_for_the_tenant() {
    let fixture = MailboxFixture::start().await;
    let (password, jwt) = fixture.mailbox("").await;
    fixture.deliver("box", "hello").await;
    fixture.team.delete("mailbox/box").await;
    fixture.assert_rejected(&password, &jwt).await;
    fixture.create_over_http("box", None).await.assert_api_error(409, "address_taken");
    // The tenant may declare the address again, without the mail.
    let (_, jwt) = fixture.mailbox("").await;
    assert_eq!(fixture.messages(&jwt).await.expect(200)["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_mailbox_can_be_changed_over_http() {
    let fixture = MailboxFixture::start().await;
    let (password, jwt) = fixture.mailbox("deletionPolicy: Retain").await;
    let shown = fixture.team.get("mailbox/box").await;
    fixture.team.delete("mailbox/box").await;
    fixture.messages(&jwt).await.expect(200);
    fixture.try_sign_in("box", &password).await.expect(200);
    let pro = fixture.pro_token(&fixture.team).await;
    let path = format!("/pro/api/accounts/{}", shown["status"]["mailboxId"].as_str().expect("an id"));
    let deleted = fixture.installation.request(Method::DELETE, &path).bearer(&pro).send().await;
    assert_eq!(deleted.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_objects_that_have_no_mailbox() {
    let fixture = MailboxFixture::start().await;
    let waiting = format!("address: a@{}", fixture.team.domain("never"));
    fixture.team.apply("Mailbox", "waits", &waiting).await;
    fixture.wait_for_reason("waits", "DomainNotServed").await;
    fixture.team.delete("mailbox/waits").await;
    fixture.declare("postmaster", "").await;
    fixture.wait_for_reason("postmaster", "InvalidSpec").await;
    fixture.team.delete("mailbox/postmaster").await;
    // This one is deleted before the operator reconciles it.
    fixture.declare("early", "").await;
    fixture.team.delete("mailbox/early").await;
    fixture.try_sign_in("early", "correct horse").await.assert_api_error(401, "invalid_credentials");
}
