//! `DELETE /pro/api/accounts/{id}`

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, Response, send_mail, smtp};

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_all_unknown, pro, unknown_ids};

async fn delete(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::DELETE, &format!("/pro/api/accounts/{id}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::DELETE, "/pro/api/accounts/019a0000-0000-7000-8000-000000000000")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_mailbox_jwts_and_mail_at_once() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "mine", "").await;
    let email = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let answer = delete(&app, mailbox.id).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));

    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
    app.get(&format!("/v1/email/{email}")).await.assert_v1_error(404, "not_found");
    app.get("/v1/inbox/name@inbox.localhost").await.assert_v1_error(404, "not_found");
    let path = format!("/pro/api/accounts/{}/messages", mailbox.id);
    pro(&app, Method::GET, &path).send().await.assert_api_error(404, "not_found");
    delete(&app, mailbox.id).await.assert_api_error(404, "not_found");
    let listed = pro(&app, Method::GET, "/pro/api/accounts").send().await.expect(200);
    assert!(listed["accounts"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_only_the_mail_of_the_mailbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.mailbox(Some(&app.tenant.pro), "neighbour@inbox.localhost").await;
    for subject in ["one", "two", "three"] {
        app.deliver("name@inbox.localhost", subject, "").await;
    }
    app.deliver("neighbour@inbox.localhost", "stays", "").await;
    assert_eq!(delete(&app, mailbox.id).await.status, 204);
    app.worker_pass().await;
    eventually("the purge is complete", || async {
        (app.count("SELECT count(*) FROM purge").await == 0).then_some(())
    })
    .await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    let used = app.count("SELECT stored_bytes::bigint + message_row_bytes() FROM raw").await;
    let of_tenant = "SELECT sum(bytes)::bigint FROM usage u JOIN tenant t ON t.id = u.scope";
    assert_eq!(app.count(of_tenant).await, used, "its usage is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_the_address_on_a_system_domain_and_releases_it_on_a_custom_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    assert_eq!(delete(&app, mailbox.id).await.status, 204);
    app.create_mailbox(None, "held@inbox.localhost", "pass123").await.assert_api_error(409, "address_taken");
    let theirs = app.create_mailbox(Some(&other.pro), "held@inbox.localhost", "pass123").await;
    theirs.assert_api_error(409, "address_taken");
    let message = smtp::message("a@client.example", "reset your password", "");
    eventually("the address is rejected permanently", || async {
        // RCPT may be accepted from a cache for 5 s, but no mail is.
        let reply = send_mail(app.smtp(), "a@client.example", "held@inbox.localhost", &message).await;
        assert!(!reply.is_positive(), "{reply:?}");
        (reply.status() == "550 5.1.1").then_some(())
    })
    .await;
    app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;

    app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    assert_eq!(delete(&app, mailbox.id).await.status, 204);
    app.deliver("box@ships.example", "to the domain's owner", "").await;
    assert_eq!(app.emails("box@ships.example").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_a_pending_long_poll_with_404() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let waiting = app.token(&app.tenant, TokenKind::Live).await;
    let wait = app.start_long_poll(&waiting, "/v1/inbox/name@inbox.localhost").await;
    assert_eq!(delete(&app, mailbox.id).await.status, 204);
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_mailbox_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let mut ids = unknown_ids(&app);
    ids.extend([theirs.id.to_string(), free.id.to_string()]);
    assert_all_unknown(&ids, async |id| delete(&app, id).await).await;
    delete(&app, "%FF").await.assert_api_error(400, "invalid_request");
    for mailbox in [theirs, free] {
        assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_once_under_concurrent_requests() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let answers = futures_util::future::join_all((0..20).map(|_| delete(&app, mailbox.id))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 204).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 204) {
        answer.assert_api_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_mailbox_managed_by_kubernetes() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Mailbox, mailbox.id).await;
    delete(&app, mailbox.id).await.assert_api_error(409, "managed_by_kubernetes");
    let me = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    me.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
}
