//! Mailboxes whose tenant does not allow them any longer, or is another one.

use serde_json::json;
use tempmail_tests::kubernetes::assert_conditions;

use super::MailboxFixture;

#[tokio::test(flavor = "multi_thread")]
async fn ends_all_sessions_and_keeps_the_mail_when_the_grant_is_lost() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.revoke_grant().await;
    fixture.wait_for_reason("box", "TenantRefNotPermitted").await;
    fixture.assert_rejected(&former, &jwt).await;
    fixture.deliver("box", "meanwhile").await;
    fixture.team.declare_tenant("").await;
    fixture.wait_until_ready("box").await;
    fixture.assert_rejected(&former, &jwt).await;
    fixture.assert_only_mail(&fixture.sign_in("box").await, "meanwhile").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_created_again_does_not_get_the_address() {
    let fixture = MailboxFixture::with_tenant("deletionPolicy: Delete").await;
    let (former, jwt) = fixture.mailbox("").await;
    fixture.team.delete(&fixture.team.tenant_object()).await;
    fixture.messages(&jwt).await.assert_api_error(401, "invalid_token");
    fixture.team.declare_tenant("").await;
    // The address is reserved: mail that is still sent to it is not for the new tenant.
    fixture.wait_for_reason("box", "AddressTaken").await;
    fixture.try_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_of_a_retained_tenant_does_not_pass_to_the_next_one() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    let shown = fixture.team.get("mailbox/box").await;
    fixture.team.delete(&fixture.team.tenant_object()).await;
    // The mailbox is deactivated before the next Tenant has a row.
    fixture.wait_for_reason("box", "TenantRefNotPermitted").await;
    fixture.team.declare_tenant("").await;
    let replaced = fixture.wait_for_reason("box", "TenantReplaced").await;
    assert_eq!(replaced["status"]["mailboxId"], shown["status"]["mailboxId"]);
    assert_conditions(&replaced, &[("Accepted", "False")]);
    assert_eq!(fixture.password("box").await, former);
    fixture.assert_rejected(&former, &jwt).await;
    assert_eq!(fixture.accounts().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_no_mailbox_for_a_suspended_tenant() {
    let fixture = MailboxFixture::with_tenant("suspended: true").await;
    fixture.declare("box", "").await;
    let shown = fixture.wait_for_reason("box", "TenantSuspended").await;
    assert_conditions(&shown, &[("Stalled", "True")]);
    assert!(fixture.team.get_opt("secret/box-mailbox").await.is_none(), "a password is written");
    fixture.team.declare_tenant("suspended: false").await;
    fixture.wait_until_ready("box").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_mailbox_whose_row_was_removed() {
    let fixture = MailboxFixture::start().await;
    let (former, jwt) = fixture.mailbox("").await;
    let id = fixture.team.get("mailbox/box").await["status"]["mailboxId"].clone();
    fixture.installation.remove_mailbox(id.as_str().expect("an id")).await;
    let has_another_id = |shown: &serde_json::Value| shown["status"]["mailboxId"] != id;
    fixture.team.wait_until("mailbox/box", "another id", has_another_id).await;
    fixture.wait_until_ready("box").await;
    fixture.assert_rejected(&former, &jwt).await;
    fixture.messages(&fixture.sign_in("box").await).await.expect(200);
}
