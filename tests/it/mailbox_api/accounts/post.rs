//! `POST /api/accounts`

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, send_mail, smtp};

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_created_with_a_jwt_that_works() {
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
async fn a_bad_address_or_domain_is_invalid_address() {
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
        answer.is_api_error(400, "invalid_address");
    }
    let theirs = app.create_mailbox(Some(&other.pro), "a@ships.example", "pass123").await;
    let nobodys = app.create_mailbox(Some(&other.pro), "a@elsewhere.example", "pass123").await;
    assert_eq!(theirs.text(), nobodys.text(), "another's domain is as one that is not here");
    theirs.is_api_error(400, "invalid_address");
    assert_eq!(app.create_mailbox(Some(&app.tenant.pro), "a@ships.example", "pass123").await.status, 201);
    let reserved = app.create_mailbox(Some(&app.tenant.pro), "admin@inbox.localhost", "pass123").await;
    reserved.is_api_error(400, "invalid_address");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_custom_domain_is_invalid_address() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.end_verification(domain).await;
    let answer = app.create_mailbox(Some(&app.tenant.pro), "a@ships.example", "pass123").await;
    answer.is_api_error(400, "invalid_address");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_has_6_to_128_characters() {
    let app = App::start().await;
    let create = |password: String| {
        let app = &app;
        async move { app.create_mailbox(None, "len@inbox.localhost", &password).await }
    };
    create("12345".into()).await.is_api_error(400, "password_too_short");
    create(String::new()).await.is_api_error(400, "password_too_short");
    create("é".repeat(5)).await.is_api_error(400, "password_too_short");
    create("x".repeat(129)).await.is_api_error(400, "password_too_long");
    assert_eq!(create("é".repeat(128)).await.status, 201, "characters count, not octets");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_address_taken() {
    let app = App::start().await;
    app.mailbox(None, "name@inbox.localhost").await;
    for pro in [None, Some(app.tenant.pro.as_str())] {
        let answer = app.create_mailbox(pro, "NAME@inbox.localhost", "pass123").await;
        answer.is_api_error(409, "address_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_create_one_address_at_once_one_gets_it() {
    let app = App::start().await;
    let attempts = (0..12).map(|_| app.create_mailbox(None, "race@inbox.localhost", "pass123"));
    let answers = futures_util::future::join_all(attempts).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.is_api_error(409, "address_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_place_of_a_tenant_is_given_once() {
    let app = App::start().await;
    sqlx::query("UPDATE tenant SET mailbox_limit = 3 WHERE id = $1")
        .bind(app.tenant.id)
        .execute(&app.pool)
        .await
        .unwrap();
    let names: Vec<String> = (0..8).map(|i| format!("m{i}@inbox.localhost")).collect();
    let attempts = names.iter().map(|name| app.create_mailbox(Some(&app.tenant.pro), name, "pass123"));
    let answers = futures_util::future::join_all(attempts).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.is_api_error(403, "account_limit_reached");
    }
    let free = app.create_mailbox(None, "free@inbox.localhost", "pass123").await;
    assert_eq!(free.status, 201, "free mailboxes are nobody's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_is_given_must_be_a_live_pro_token() {
    let app = App::start().await;
    let create = |credential: String| {
        let app = &app;
        async move { app.create_mailbox(Some(&credential), "cred@inbox.localhost", "pass123").await }
    };
    for credential in [app.tenant.live.clone(), "x".into(), format!("tm_pro_{}", "0".repeat(64))] {
        let answer = create(credential).await;
        answer.is_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    sqlx::query("UPDATE api_token SET expires_at = created_at WHERE kind = 'pro' AND hash = $1")
        .bind(
            tempmail_model::token::TokenHash::from_presented(TokenKind::Pro, &expired)
                .unwrap()
                .as_bytes()
                .as_slice(),
        )
        .execute(&app.pool)
        .await
        .unwrap();
    app.clock.advance(SignedDuration::from_secs(1));
    create(expired).await.is_api_error(440, "session_expired");
    sqlx::query("UPDATE tenant SET suspended = true").execute(&app.pool).await.unwrap();
    create(app.tenant.pro.clone()).await.is_api_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_removed_mailbox_is_held_for_its_tenant_alone() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    app.deliver("held@inbox.localhost", "before", "").await;
    let deleted = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);

    app.create_mailbox(None, "held@inbox.localhost", "pass123").await.is_api_error(409, "address_taken");
    let theirs = app.create_mailbox(Some(&other.pro), "held@inbox.localhost", "pass123").await;
    theirs.is_api_error(409, "address_taken");
    let message = smtp::message("a@client.example", "reset your password", "");
    for address in ["held@inbox.localhost", "held+tag@inbox.localhost"] {
        // RCPT may remember a yes for 5 s; nothing is taken meanwhile.
        eventually("the address is refused for good", || async {
            let reply = send_mail(app.smtp(), "a@client.example", address, &message).await;
            assert!(!reply.is_positive(), "{reply:?}");
            (reply.status() == "550 5.1.1").then_some(())
        })
        .await;
    }
    app.get("/v1/inbox/held@inbox.localhost").await.is_v1_error(404, "not_found");
    app.get_as(&other.live, "/v1/inbox/held@inbox.localhost").await.is_v1_error(404, "not_found");

    let again = app.mailbox(Some(&app.tenant.pro), "held@inbox.localhost").await;
    assert!(app.messages(&again).await.is_empty(), "a mailbox starts empty");
    let revived = app.get_mailbox(&mailbox, "/api/messages").await;
    revived.is_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_removed_mailbox_on_a_custom_domain_is_its_tenants_at_once() {
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
async fn a_malformed_body_is_invalid_request_and_names_the_field() {
    let app = App::start().await;
    let post = |body: &'static str| {
        let request = app.request(Method::POST, "/api/accounts").body("application/json", body);
        async move { request.send().await }
    };
    for body in ["", "{", "[]", "null", "\"x\"", "{\"address\":", "\u{0}"] {
        post(body).await.is_api_error(400, "invalid_request");
    }
    for (body, field) in [
        (r#"{"password":"pass123"}"#, "address"),
        (r#"{"address":"a@inbox.localhost"}"#, "password"),
        (r#"{"address":1,"password":"pass123"}"#, "address"),
        (r#"{"address":"a@inbox.localhost","password":["x"]}"#, "password"),
    ] {
        let answer = post(body).await;
        answer.is_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{}", answer.text());
    }
    let unknown = json!({ "address": "a@inbox.localhost", "password": "pass123", "colour": "red" });
    let answer = app.request(Method::POST, "/api/accounts").json(&unknown).send().await;
    assert_eq!(answer.status, 201, "unknown fields are ignored");
}
