//! `POST /api/accounts`

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, send_mail, smtp};

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
    let long = format!("{}@inbox.localhost", "x".repeat(65));
    for address in [
        "",
        "a",
        "@inbox.localhost",
        "a@",
        "a@@inbox.localhost",
        "a b@inbox.localhost",
        "a+b@inbox.localhost",
        "a..b@inbox.localhost",
        "-a@inbox.localhost",
        "a-@inbox.localhost",
        "_a@inbox.localhost",
        "é@inbox.localhost",
        "\u{212a}im@inbox.localhost",
        "a\u{0}@inbox.localhost",
        "a@elsewhere.example",
        "a@sub.inbox.localhost",
        "admin@inbox.localhost",
        "Postmaster@inbox.localhost",
        "abuse@inbox.localhost",
        "a@ships.example",
        &long,
    ] {
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
async fn takes_an_empty_bearer_for_none() {
    let app = App::start().await;
    for (number, value) in ["Bearer", "Bearer ", "bearer", ""].into_iter().enumerate() {
        let body = json!({ "address": format!("n{number}@inbox.localhost"), "password": "pass123" });
        let request = app.request(Method::POST, "/api/accounts").header("authorization", value).json(&body);
        assert_eq!(request.send().await.status, 201, "{value:?}");
        let bare = app.request(Method::GET, "/api/me").header("authorization", value).send().await;
        bare.assert_api_error(401, "authentication_required");
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
    let attempts = (0..12).map(|_| app.create_mailbox(None, "race@inbox.localhost", "pass123"));
    let answers = futures_util::future::join_all(attempts).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.assert_api_error(409, "address_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_mailbox_limit_under_concurrent_requests() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Mailboxes, 3).await;
    let names: Vec<String> = (0..8).map(|i| format!("m{i}@inbox.localhost")).collect();
    let attempts = names.iter().map(|name| app.create_mailbox(Some(&app.tenant.pro), name, "pass123"));
    let answers = futures_util::future::join_all(attempts).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.assert_api_error(403, "account_limit_reached");
    }
    let free = app.create_mailbox(None, "free@inbox.localhost", "pass123").await;
    assert_eq!(free.status, 201, "free mailboxes do not count");
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
async fn rejects_any_credential_but_a_valid_pro_token() {
    let app = App::start().await;
    let create = |credential: String| {
        let app = &app;
        async move { app.create_mailbox(Some(&credential), "cred@inbox.localhost", "pass123").await }
    };
    for credential in [app.tenant.live.clone(), "x".into(), format!("tm_pro_{}", "0".repeat(64))] {
        let answer = create(credential).await;
        answer.assert_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    rows::expire_token(&app.pool, &expired, app.clock.now()).await;
    app.clock.advance(SignedDuration::from_secs(1));
    create(expired).await.assert_api_error(440, "session_expired");
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    create(app.tenant.pro.clone()).await.assert_api_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_the_address_of_a_removed_mailbox_for_its_tenant() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    app.deliver("held@inbox.localhost", "before", "").await;
    let deleted = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);

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
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.status, 204);
    app.deliver("box@ships.example", "after", "").await;
    let emails = app.emails("box@ships.example").await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"after".into()));
    let again = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    assert!(app.messages(&again).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_body_and_names_the_field() {
    let app = App::start().await;
    let post = |body: &'static str| {
        let request = app.request(Method::POST, "/api/accounts").body("application/json", body);
        async move { request.send().await }
    };
    for body in ["", "{", "[]", "null", "\"x\"", "{\"address\":", "\u{0}"] {
        post(body).await.assert_api_error(400, "invalid_request");
    }
    for (body, field) in [
        (r#"{"password":"pass123"}"#, "address"),
        (r#"{"address":"a@inbox.localhost"}"#, "password"),
        (r#"{"address":1,"password":"pass123"}"#, "address"),
        (r#"{"address":"a@inbox.localhost","password":["x"]}"#, "password"),
    ] {
        let answer = post(body).await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{}", answer.text());
    }
    let unknown = json!({ "address": "a@inbox.localhost", "password": "pass123", "colour": "red" });
    let answer = app.request(Method::POST, "/api/accounts").json(&unknown).send().await;
    assert_eq!(answer.status, 201, "unknown fields are ignored");
}
