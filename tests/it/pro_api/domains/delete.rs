//! `DELETE /pro/api/domains/{id}`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, TestDns, send_mail, smtp};

use super::{hand_to_kubernetes, knows_own_ids_only};
use crate::pro_api::is_for_pro_alone;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_pro_tokens_alone() {
    is_for_pro_alone(Method::DELETE, "/pro/api/domains/00000000-0000-7000-8000-00000000ffff").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_of_nobody_or_another_is_not_found() {
    let app = App::start().await;
    knows_own_ids_only(&app, Method::DELETE, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_deleted_once() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    assert_eq!(app.delete_domain(&app.tenant, &domain.id).await.status, 204);
    assert!(app.domains(&app.tenant).await.is_empty());
    app.delete_domain(&app.tenant, &domain.id).await.is_api_error(404, "not_found");
    app.check_domain(&app.tenant, &domain.id).await.is_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubernetes_manages_stays() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    hand_to_kubernetes(&app, &domain.id).await;
    app.delete_domain(&app.tenant, &domain.id).await.is_api_error(409, "managed_by_kubernetes");
    let record = app.domain_record(&app.tenant, &domain.id).await;
    assert_eq!(record["managed_by"], "kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_and_mail_go_with_it_and_mail_is_refused_from_then_on() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await.to_string();
    app.custom_domain(&app.tenant, "boats.test").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("box@ships.test", "to the mailbox", "").await;
    app.deliver("any@ships.test", "to the domain", "").await;
    app.deliver("any@boats.test", "to another domain", "").await;
    let id = app.emails("any@ships.test").await[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(app.delete_domain(&app.tenant, &domain).await.status, 204);
    app.get("/v1/inbox/any@ships.test").await.is_v1_error(404, "not_found");
    app.get("/v1/inbox/box@ships.test").await.is_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}")).await.is_v1_error(404, "not_found");
    app.get_mailbox(&mailbox, "/api/messages").await.is_api_error(401, "invalid_token");
    let body = json!({ "address": mailbox.address, "password": mailbox.password });
    let sign_in = app.request(Method::POST, "/api/token").json(&body).send().await;
    sign_in.is_api_error(401, "invalid_credentials");
    let refused = app.create_mailbox(Some(&app.tenant.pro), "new@ships.test", "pass123").await;
    refused.is_api_error(400, "invalid_address");
    let message = smtp::message("a@client.example", "after", "");
    let reply = send_mail(app.smtp(), "a@client.example", "new@ships.test", &message).await;
    assert_eq!(reply.status(), "550 5.7.1");
    let reply = send_mail(app.smtp(), "a@client.example", "any@ships.test", &message).await;
    assert!(!reply.is_positive(), "a yes that RCPT remembers stores nothing: {reply:?}");

    // Carried out: twice, for what needs the rows goes first.
    app.worker_pass().await;
    app.worker_pass().await;
    let left: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM message").fetch_all(&app.pool).await.unwrap();
    assert_eq!(left, ["to another domain"]);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE tenant IS NOT NULL").await, 1);
    let kept = app.count("SELECT sum(size)::bigint FROM message").await;
    assert_eq!(
        app.count("SELECT sum(bytes)::bigint FROM message_partition").await,
        kept,
        "what it counted is given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn open_waits_end_with_it() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await.to_string();
    let blocked = app.start_long_poll(&app.tenant.live, "/v1/inbox/any@ships.test").await;
    assert_eq!(app.delete_domain(&app.tenant, &domain).await.status, 204);
    let answer = within_deadline("the wait ends", blocked).await.unwrap();
    answer.is_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_made_again_keeps_its_token_and_none_of_its_mail() {
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
    assert_eq!(second.txt, first.txt, "the record that is there is right still");
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &second.id).await["verify_status"], "verified");
    app.assert_inbox_is_empty("any@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
}
