//! `POST /api/accounts`

mod again;

use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, send_mail, smtp};

use crate::pro_api::concurrently;

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_with_a_working_jwt() {
    let app = App::start().await;
    for pro in [None, Some(app.tenant.pro.as_str())] {
        let address = if pro.is_some() { "Pro.Name@inbox.localhost" } else { "free@inbox.localhost" };
        let created = app.create_mailbox(pro, address, "pass123").await.expect(201);
        assert_eq!(
            created,
            json!({ "id": created["id"], "address": address.to_lowercase(), "token": created["token"] })
        );
        let jwt = created["token"].as_str().unwrap();
        let me = app.request(Method::GET, "/api/me").bearer(jwt).send().await.expect(200);
        assert_eq!(me["id"], created["id"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_invalid_address_or_domain() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&app.tenant, "ships.example").await;
    // `addresses` has all spellings.
    for address in
        ["", "-a@inbox.localhost", "_a@inbox.localhost", "admin@inbox.localhost", "a@ships.example"]
    {
        let answer = app.create_mailbox(None, address, "pass123").await;
        assert_eq!(answer.status, 400, "{address:?}: {}", answer.text());
        answer.assert_api_error(400, "invalid_address");
    }
    let theirs = app.create_mailbox(Some(&other.pro), "a@ships.example", "pass123").await;
    let nobodys = app.create_mailbox(Some(&other.pro), "a@elsewhere.example", "pass123").await;
    assert_eq!(theirs.text(), nobodys.text(), "a foreign domain is like an unknown one");
    theirs.assert_api_error(400, "invalid_address");
    assert_eq!(app.create_mailbox(Some(&app.tenant.pro), "a@ships.example", "pass123").await.status, 201);
    let reserved = app.create_mailbox(Some(&app.tenant.pro), "admin@inbox.localhost", "pass123").await;
    reserved.assert_api_error(400, "invalid_address");
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_to_do_with_a_tag() {
    let app = App::start().await;
    for pro in [None, Some(app.tenant.pro.as_str())] {
        let answer = app.create_mailbox(pro, "name+tag@inbox.localhost", "pass123").await;
        answer.assert_api_error(400, "invalid_address");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("leave out `+` and what follows it"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_unverified_custom_domain() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.end_verification(domain).await;
    let answer = app.create_mailbox(Some(&app.tenant.pro), "a@ships.example", "pass123").await;
    answer.assert_api_error(400, "invalid_address");
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_a_password_of_6_to_128_characters() {
    let app = App::start().await;
    let create = |password: String| {
        let app = &app;
        async move { app.create_mailbox(None, "len@inbox.localhost", &password).await }
    };
    create("12345".into()).await.assert_api_error(400, "password_too_short");
    create(String::new()).await.assert_api_error(400, "password_too_short");
    create("é".repeat(5)).await.assert_api_error(400, "password_too_short");
    create("x".repeat(129)).await.assert_api_error(400, "password_too_long");
    assert_eq!(create("é".repeat(128)).await.status, 201, "the limit is in characters, not bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_address_in_use() {
    let app = App::start().await;
    app.mailbox(None, "name@inbox.localhost").await;
    for pro in [None, Some(app.tenant.pro.as_str())] {
        let answer = app.create_mailbox(pro, "NAME@inbox.localhost", "pass123").await;
        answer.assert_api_error(409, "address_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_once_under_concurrent_requests() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let body = json!({ "address": "race@inbox.localhost", "password": "pass123" });
    let answers = concurrently(|number| {
        let request = app.request(Method::POST, "/api/accounts").json(&body);
        match number % 3 {
            0 => request,
            1 => request.bearer(&app.tenant.pro),
            _ => request.bearer(&other.pro),
        }
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.assert_api_error(409, "address_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_limit_of_free_mailboxes_under_concurrent_requests() {
    let app = App::builder().config(|config| config.limits.free_mailboxes = 3).start().await;
    let names: Vec<String> = (0..8).map(|i| format!("m{i}@inbox.localhost")).collect();
    let attempts = names.iter().map(|name| app.create_mailbox(None, name, "pass123"));
    let answers = futures_util::future::join_all(attempts).await;
    let created: Vec<usize> = (0..8).filter(|i| answers[*i].status == 201).collect();
    assert_eq!(created.len(), 3);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.assert_api_error(403, "account_limit_reached");
    }
    let paid = app.create_mailbox(Some(&app.tenant.pro), "paid@inbox.localhost", "pass123").await;
    assert_eq!(paid.status, 201, "a tenant has a limit of its own");

    let answer: serde_json::Value = answers[created[0]].json();
    let jwt = answer["token"].as_str().unwrap();
    let removed = app.request(Method::DELETE, "/api/me").bearer(jwt).send().await;
    assert_eq!(removed.status, 204);
    assert_eq!(app.create_mailbox(None, "next@inbox.localhost", "pass123").await.status, 201);
    app.create_mailbox(None, "beyond@inbox.localhost", "pass123")
        .await
        .assert_api_error(403, "account_limit_reached");
    let free = "SELECT free - (SELECT count(*) FROM mailbox WHERE tenant IS NULL AND removed_at IS NULL)
                FROM mailbox_count";
    assert_eq!(app.count(free).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_the_address_of_a_removed_mailbox_for_its_tenant() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    app.deliver("held@inbox.localhost", "before", "").await;
    app.delete_mailbox(&mailbox).await;

    app.create_mailbox(None, "held@inbox.localhost", "pass123").await.assert_api_error(409, "address_taken");
    let theirs = app.create_mailbox(Some(&other.pro), "held@inbox.localhost", "pass123").await;
    theirs.assert_api_error(409, "address_taken");
    let message = smtp::message("a@client.example", "reset your password", "");
    for address in ["held@inbox.localhost", "held+tag@inbox.localhost"] {
        // RCPT may be accepted from a cache for 5 s, but no mail is.
        eventually("the address is rejected permanently", || async {
            let reply = send_mail(app.smtp(), "a@client.example", address, &message).await;
            assert!(!reply.is_positive(), "{reply:?}");
            (reply.status() == "550 5.1.1").then_some(())
        })
        .await;
    }
    app.get("/v1/inbox/held@inbox.localhost").await.assert_v1_error(404, "not_found");
    app.get_as(&other.live, "/v1/inbox/held@inbox.localhost").await.assert_v1_error(404, "not_found");

    let again = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    assert!(app.messages(&again).await.is_empty(), "a mailbox starts empty");
    let revived = app.get_mailbox(&mailbox, "/api/messages").await;
    revived.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_an_address_on_a_custom_domain_at_once() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    app.deliver("box@ships.example", "before", "").await;
    app.delete_mailbox(&mailbox).await;
    app.deliver("box@ships.example", "after", "").await;
    let emails = app.emails("box@ships.example").await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"after".into()));
    let again = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    assert!(app.messages(&again).await.is_empty());
}
