//! The API of mail.tm.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, Response};

use super::{deliver, texts, unknown_like, whole};

const MAILTM: DropInSurface = DropInSurface::MailTm;
const PASSWORD: &str = "correct horse";

async fn start() -> App {
    App::builder().drop_ins().start().await
}

/// The body of an answer in JSON-LD.
fn hydra(answer: &Response, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/ld+json; charset=utf-8");
    serde_json::from_slice(&answer.body).unwrap()
}

async fn get(app: &App, mailbox: &Mailbox, path: &str) -> Response {
    app.drop_in_request(MAILTM, Method::GET, path).bearer(&mailbox.jwt).send().await
}

async fn post(app: &App, path: &str, body: Value) -> Response {
    app.drop_in_request(MAILTM, Method::POST, path).json(&body).send().await
}

/// A mailbox, created and signed in to on the surface.
async fn mailbox(app: &App, address: &str) -> Mailbox {
    let credentials = json!({"address": address, "password": PASSWORD});
    let account = hydra(&post(app, "/accounts", credentials.clone()).await, 201);
    let signed_in = post(app, "/token", credentials).await.expect(200);
    assert_eq!(signed_in["id"], account["id"]);
    Mailbox {
        id: account["id"].as_str().unwrap().parse().unwrap(),
        address: address.into(),
        password: PASSWORD.into(),
        jwt: signed_in["token"].as_str().unwrap().into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_in_both_forms() {
    let app = start().await;
    app.custom_domain(&app.tenant, "shop.example").await;
    let answer = app.drop_in_request(MAILTM, Method::GET, "/domains").send().await;
    let collection = hydra(&answer, 200);
    assert_eq!(
        (&collection["@type"], &collection["hydra:totalItems"]),
        (&json!("hydra:Collection"), &json!(1))
    );
    let domain = &collection["hydra:member"][0];
    assert_eq!((&domain["domain"], &domain["isActive"]), (&json!("inbox.localhost"), &json!(true)));
    let path = domain["@id"].as_str().unwrap();
    let one = hydra(&app.drop_in_request(MAILTM, Method::GET, path).send().await, 200);
    assert_eq!((&one["@context"], &one["domain"]), (&json!("/contexts/Domain"), &domain["domain"]));
    let plain =
        app.drop_in_request(MAILTM, Method::GET, "/domains?page=1").header("accept", "application/json");
    // Clients send an empty token before they have one.
    let plain = plain.header("authorization", "Bearer ").send().await.expect(200);
    assert_eq!((&plain[0]["domain"], &plain[0]["@id"]), (&json!("inbox.localhost"), &json!(null)));
    assert_eq!(app.drop_in_request(MAILTM, Method::GET, "/domains/x").send().await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_shows_and_deletes_an_account() {
    let app = start().await;
    let kim = mailbox(&app, "kim@inbox.localhost").await;
    let me = hydra(&get(&app, &kim, "/me").await, 200);
    assert_eq!(
        (&me["address"], &me["used"], &me["isDisabled"]),
        (&json!(kim.address), &json!(0), &json!(false))
    );
    let path = format!("/accounts/{}", kim.id);
    assert_eq!(hydra(&get(&app, &kim, &path).await, 200), me);
    let lee = mailbox(&app, "lee@inbox.localhost").await;
    assert_eq!(get(&app, &lee, &path).await.status, 404);
    let delete = async |who: &Mailbox| {
        app.drop_in_request(MAILTM, Method::DELETE, &path).bearer(&who.jwt).send().await.status
    };
    assert_eq!((delete(&lee).await, delete(&kim).await), (404, 204));
    assert_eq!((get(&app, &kim, "/me").await.status, delete(&kim).await), (401, 401));
    let own = app.get_mailbox(&lee, "/api/me").await;
    assert_eq!(own.status, 200, "the JWT is that of the mailbox API");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_accounts_and_credentials_as_its_clients_know_it() {
    let app = start().await;
    mailbox(&app, "kim@inbox.localhost").await;
    app.custom_domain(&app.tenant, "shop.example").await;
    for (address, password, path) in [
        ("kim@inbox.localhost", PASSWORD, "address"),
        ("postmaster@inbox.localhost", PASSWORD, "address"),
        ("kim@elsewhere.example", PASSWORD, "address"),
        ("kim@shop.example", PASSWORD, "address"),
        ("a b@inbox.localhost", PASSWORD, "address"),
        ("lee@inbox.localhost", "short", "password"),
    ] {
        let answer =
            post(&app, "/accounts", json!({"address": address, "password": password})).await.expect(422);
        assert_eq!(answer["violations"][0]["propertyPath"], path, "{address}: {answer}");
        assert!(!answer["hydra:description"].as_str().unwrap().is_empty());
    }
    assert_eq!(post(&app, "/accounts", json!({"address": 1})).await.status, 400);
    assert_eq!(post(&app, "/accounts", json!({})).await.status, 400);
    let wrong = json!({"address": "kim@inbox.localhost", "password": "another one"});
    let refused = post(&app, "/token", wrong).await.expect(401);
    assert_eq!((&refused["code"], &refused["message"]), (&json!(401), &json!("Invalid credentials.")));
    let anonymous = app.drop_in_request(MAILTM, Method::GET, "/me").send().await.expect(401);
    assert_eq!(anonymous["message"], "JWT Token not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_surface_creates_mailboxes_of_its_tenant() {
    let app = start().await;
    app.custom_domain(&app.tenant, "shop.example").await;
    let token = app.surface_token(&app.tenant, &[MAILTM]).await;
    let other = app.surface_token(&app.tenant, &[DropInSurface::Mailpit]).await;
    let create = async |token: &str, local_part: &str| {
        let body = json!({"address": format!("{local_part}@shop.example"), "password": PASSWORD});
        app.drop_in_request(MAILTM, Method::POST, "/accounts").bearer(token).json(&body).send().await.status
    };
    assert_eq!(create(&token, "kim").await, 201);
    for refused in [&other, &app.tenant.live, &app.tenant.pro] {
        assert_eq!(create(refused, "lee").await, 401);
    }
    let accounts =
        app.request(Method::GET, "/pro/api/accounts").bearer(&app.tenant.pro).send().await.expect(200);
    assert_eq!(texts(&accounts["accounts"], "address"), ["kim@shop.example"]);
    let lee = mailbox(&app, "lee@inbox.localhost").await;
    assert_eq!(create(&lee.jwt, "max").await, 422, "a JWT says nothing here");
    for path in ["/me", "/messages"] {
        assert_eq!(
            app.drop_in_request(MAILTM, Method::GET, path).bearer(&token).send().await.status,
            401,
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_shows_marks_and_deletes_messages() {
    let app = start().await;
    let kim = mailbox(&app, "kim@inbox.localhost").await;
    deliver(&app, &kim.address, &whole(&kim.address, "whole")).await;
    app.deliver(&kim.address, "plain", "hello").await;
    let list = hydra(&get(&app, &kim, "/messages").await, 200);
    assert_eq!((&list["hydra:totalItems"], &list["hydra:view"]), (&json!(2), &json!(null)));
    assert_eq!(texts(&list["hydra:member"], "subject"), ["plain", "whole"]);
    let summary = &list["hydra:member"][1];
    assert_eq!(summary["from"], json!({"address": "hello@mailer.example", "name": "Café"}));
    assert_eq!(summary["to"][0], json!({"address": kim.address, "name": "Kim"}));
    assert_eq!((&summary["seen"], &summary["hasAttachments"]), (&json!(false), &json!(true)));
    assert_eq!((&summary["msgid"], &summary["isDeleted"]), (&json!("<m1@mailer.example>"), &json!(false)));
    assert_eq!(summary["accountId"], format!("/accounts/{}", kim.id));
    let path = summary["@id"].as_str().unwrap();
    let message = hydra(&get(&app, &kim, path).await, 200);
    assert!(message["text"].as_str().unwrap().starts_with("Your verification code"));
    assert!(message["html"][0].as_str().unwrap().contains("<script>"), "as received");
    assert_eq!((&message["id"], &message["@context"]), (&summary["id"], &json!("/contexts/Message")));
    let pdf = &message["attachments"][1];
    assert_eq!((&pdf["filename"], &pdf["contentType"]), (&json!("bill.pdf"), &json!("application/pdf")));
    assert_eq!(get(&app, &kim, pdf["downloadUrl"].as_str().unwrap()).await.text(), "hello");
    let raw = get(&app, &kim, summary["downloadUrl"].as_str().unwrap()).await;
    let source = hydra(&get(&app, &kim, summary["sourceUrl"].as_str().unwrap()).await, 200);
    assert_eq!(source["data"].as_str().unwrap(), raw.text());
    for seen in [true, false] {
        let request = app.drop_in_request(MAILTM, Method::PATCH, path).bearer(&kim.jwt);
        let body = format!("{{\"seen\": {seen}}}");
        let answer = hydra(&request.body("application/merge-patch+json", body).send().await, 200);
        assert_eq!(answer["seen"], seen);
        assert_eq!(hydra(&get(&app, &kim, path).await, 200)["seen"], seen);
    }
    let wrong =
        app.drop_in_request(MAILTM, Method::PATCH, path).bearer(&kim.jwt).json(&json!({})).send().await;
    assert_eq!(wrong.status, 400);
    let delete =
        async || app.drop_in_request(MAILTM, Method::DELETE, path).bearer(&kim.jwt).send().await.status;
    assert_eq!((delete().await, delete().await), (204, 404));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_pages_of_30_in_both_forms() {
    let app = start().await;
    let kim = mailbox(&app, "kim@inbox.localhost").await;
    for number in 0..31 {
        app.deliver(&kim.address, &format!("m{number}"), "").await;
    }
    let first = hydra(&get(&app, &kim, "/messages").await, 200);
    assert_eq!(
        (first["hydra:member"].as_array().unwrap().len(), &first["hydra:totalItems"]),
        (30, &json!(31))
    );
    assert_eq!(first["hydra:view"]["hydra:next"], "/messages?page=2");
    let second = hydra(&get(&app, &kim, "/messages?page=2").await, 200);
    assert_eq!(texts(&second["hydra:member"], "subject"), ["m0"]);
    assert_eq!(second["hydra:view"]["hydra:next"], json!(null));
    let plain = app.drop_in_request(MAILTM, Method::GET, "/messages?page=2").bearer(&kim.jwt);
    let plain = plain.header("accept", "application/json").send().await.expect(200);
    assert_eq!(texts(&plain, "subject"), ["m0"]);
    for wrong in ["0", "x", "-1"] {
        assert_eq!(get(&app, &kim, &format!("/messages?page={wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_reads_no_mail_of_another() {
    let app = start().await;
    let (kim, lee) = (mailbox(&app, "kim@inbox.localhost").await, mailbox(&app, "lee@inbox.localhost").await);
    deliver(&app, &kim.address, &whole(&kim.address, "the-secret-of-kim")).await;
    let list = hydra(&get(&app, &kim, "/messages").await, 200);
    let id = list["hydra:member"][0]["id"].as_str().unwrap();
    for path in [
        format!("/messages/{id}"),
        format!("/messages/{id}/download"),
        format!("/messages/{id}/attachment/ATTACH000001"),
        format!("/sources/{id}"),
    ] {
        let answer = get(&app, &lee, &path).await;
        assert_eq!(answer.status, 404, "{path}");
        let unknown = get(&app, &lee, &path.replace(id, &unknown_like(id))).await;
        assert_eq!(answer.appearance(), unknown.appearance(), "{path}");
        assert_eq!(app.drop_in_request(MAILTM, Method::GET, &path).send().await.status, 401, "{path}");
        for token in [&app.tenant.live, &app.tenant.pro] {
            let answer = app.drop_in_request(MAILTM, Method::GET, &path).bearer(token).send().await;
            assert_eq!(answer.status, 401, "{path}");
        }
        assert_eq!(get(&app, &kim, &path).await.status, 200, "{path}");
    }
    for method in [Method::DELETE, Method::PATCH] {
        let request =
            app.drop_in_request(MAILTM, method.clone(), &format!("/messages/{id}")).bearer(&lee.jwt);
        assert_eq!(request.json(&json!({"seen": true})).send().await.status, 404, "{method}");
    }
    assert_eq!(hydra(&get(&app, &lee, "/messages").await, 200)["hydra:member"], json!([]));
}
