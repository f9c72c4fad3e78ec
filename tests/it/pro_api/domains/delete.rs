//! `DELETE /pro/api/domains/{id}`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, TestDns, send_mail, smtp};

use super::assert_knows_own_ids_only;
use crate::pro_api::assert_accepts_only_pro_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::DELETE, "/pro/api/domains/00000000-0000-7000-8000-00000000ffff")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_unknown_and_foreign_domains() {
    let app = App::start().await;
    assert_knows_own_ids_only(&app, Method::DELETE, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_a_second_deletion() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    assert_eq!(app.delete_domain(&app.tenant, &domain.id).await.status, 204);
    assert!(app.domains(&app.tenant).await.is_empty());
    app.delete_domain(&app.tenant, &domain.id).await.assert_api_error(404, "not_found");
    app.check_domain(&app.tenant, &domain.id).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_domain_managed_by_kubernetes() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Domain, domain.id.parse().unwrap()).await;
    app.delete_domain(&app.tenant, &domain.id).await.assert_api_error(409, "managed_by_kubernetes");
    let record = app.domain_record(&app.tenant, &domain.id).await;
    assert_eq!(record["managed_by"], "kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_mailboxes_and_mail_and_rejects_later_mail() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await.to_string();
    app.custom_domain(&app.tenant, "boats.test").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("box@ships.test", "to the mailbox", "").await;
    app.deliver("any@ships.test", "to the domain", "").await;
    app.deliver("any@boats.test", "to another domain", "").await;
    let id = app.emails("any@ships.test").await[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(app.delete_domain(&app.tenant, &domain).await.status, 204);
    app.get("/v1/inbox/any@ships.test").await.assert_v1_error(404, "not_found");
    app.get("/v1/inbox/box@ships.test").await.assert_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
    let body = json!({ "address": mailbox.address, "password": mailbox.password });
    let sign_in = app.request(Method::POST, "/api/token").json(&body).send().await;
    sign_in.assert_api_error(401, "invalid_credentials");
    let refused = app.create_mailbox(Some(&app.tenant.pro), "new@ships.test", "pass123").await;
    refused.assert_api_error(400, "invalid_address");
    let message = smtp::message("a@client.example", "after", "");
    let reply = send_mail(app.smtp(), "a@client.example", "new@ships.test", &message).await;
    assert_eq!(reply.status(), "550 5.7.1");
    let reply = send_mail(app.smtp(), "a@client.example", "any@ships.test", &message).await;
    assert!(!reply.is_positive(), "a cached RCPT decision stores nothing: {reply:?}");

    // Two passes: the rows go after what depends on them.
    app.worker_pass().await;
    app.worker_pass().await;
    let left: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM message").fetch_all(&app.pool).await.unwrap();
    assert_eq!(left, ["to another domain"]);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE tenant IS NOT NULL").await, 1);
    let kept = app.count("SELECT sum(stored_bytes)::bigint + count(*) * message_row_bytes() FROM raw").await;
    assert_eq!(
        app.count("SELECT sum(bytes)::bigint FROM message_partition").await,
        kept,
        "its usage is released"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_pending_long_polls() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await.to_string();
    let blocked = app.start_long_poll(&app.tenant.live, "/v1/inbox/any@ships.test").await;
    assert_eq!(app.delete_domain(&app.tenant, &domain).await.status, 204);
    let answer = within_deadline("the wait ends", blocked).await.unwrap();
    answer.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_domain_with_its_verify_token_and_without_its_mail() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let first = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&first]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &first.id).await["verify_status"], "verified");
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("any@ships.test", "before", "").await;
    app.deliver("box@ships.test", "before", "").await;
    assert_eq!(app.delete_domain(&app.tenant, &first.id).await.status, 204);

    let second = app.domain(&app.tenant, "ships.test").await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.txt, first.txt, "the existing record stays valid");
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &second.id).await["verify_status"], "verified");
    app.assert_inbox_is_empty("any@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
}
