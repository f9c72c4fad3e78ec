//! `/pro/api/accounts`, and the messages of an account.

mod reset_password;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::{App, Response, SmtpClient};

use super::{assert_time, pro};

async fn list(app: &App, query: &str) -> Vec<Value> {
    let answer = pro(app, Method::GET, &format!("/pro/api/accounts{query}")).send().await.expect(200);
    let accounts = answer["accounts"].as_array().unwrap().clone();
    assert_eq!(answer, json!({ "accounts": accounts }));
    accounts
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_accounts_with_the_documented_fields() {
    let app = App::start().await;
    assert!(list(&app, "").await.is_empty());
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name+tag@inbox.localhost", "two", "").await;
    let used: u64 =
        app.messages(&mailbox).await.iter().map(|message| message["size"].as_u64().unwrap()).sum();
    assert!(used > 0);
    let accounts = list(&app, "").await;
    assert_time(&accounts[0]["created_at"]);
    let expected = json!({
        "id": mailbox.id,
        "address": "name@inbox.localhost",
        "quota": 52_428_800,
        "used": used,
        "created_at": accounts[0]["created_at"],
    });
    assert_eq!(accounts, [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_usage_per_mailbox_until_mail_expires() {
    let app = App::start().await;
    for name in ["a", "b"] {
        app.mailbox(Some(&app.tenant.pro), &format!("{name}@inbox.localhost")).await;
    }
    app.deliver("a@inbox.localhost", "one", "").await;
    let used = async |address: &str| {
        let accounts = list(&app, "").await;
        let account = accounts.iter().find(|account| account["address"] == address).unwrap();
        account["used"].as_i64().unwrap()
    };
    assert!(used("a@inbox.localhost").await > 0);
    assert_eq!(used("b@inbox.localhost").await, 0);
    app.advance_hours(73);
    assert_eq!(used("a@inbox.localhost").await, 0, "what has expired is not counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_newest_first_in_pages_of_1000() {
    let app = App::start().await;
    // As rows, since each creation hashes a password.
    sqlx::query(
        "INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
         SELECT gen_random_uuid(), d.id, 'm' || n, $1, 100, '', d.created_at + n * interval '1 s', d.created_at
         FROM generate_series(1, 2005) n, domain d",
    )
    .bind(app.tenant.id)
    .execute(&app.pool)
    .await
    .unwrap();
    for (query, newest, length) in [
        ("", 2005, 1000),
        ("?page=1", 2005, 1000),
        ("?page=2", 1005, 1000),
        ("?page=3", 5, 5),
        ("?page=4", 0, 0),
    ] {
        let accounts = list(&app, query).await;
        let addresses: Vec<&str> = accounts.iter().map(|a| a["address"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..length).map(|i| format!("m{}@inbox.localhost", newest - i)).collect();
        assert_eq!(addresses, expected, "{query}");
    }
    assert!(list(&app, "?page=100").await.is_empty());
    let answer = pro(&app, Method::GET, "/pro/api/accounts?page=0").send().await;
    answer.assert_api_error(400, "invalid_request");
    assert!(answer.json()["message"].as_str().unwrap().contains("page"));
}

#[tokio::test(flavor = "multi_thread")]
async fn omits_foreign_free_and_removed_mailboxes() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let removed = app.mailbox(Some(&app.tenant.pro), "removed@inbox.localhost").await;
    app.delete_mailbox(&removed).await;
    assert!(list(&app, "").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_deletes_a_mailbox_of_a_lost_domain() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    app.end_verification(domain).await;
    assert_eq!(list(&app, "").await[0]["address"], "box@ships.example", "it counts towards the limit");
    let path = format!("/pro/api/accounts/{}", mailbox.id);
    let messages = pro(&app, Method::GET, &format!("{path}/messages")).send().await;
    messages.assert_api_error(404, "not_found");
    assert_eq!(pro(&app, Method::DELETE, &path).send().await.status, 204);
    assert!(list(&app, "").await.is_empty());
}

const PATH: &str = "/pro/api/accounts";

async fn create(app: &App, address: &str, password: &str) -> Response {
    let body = json!({ "address": address, "password": password });
    pro(app, Method::POST, PATH).json(&body).send().await
}

/// The addresses of the tenant's mailboxes, in alphabetical order.
async fn addresses(app: &App) -> Vec<String> {
    let listed = pro(app, Method::GET, PATH).send().await.expect(200);
    let accounts = listed["accounts"].as_array().unwrap();
    let mut addresses: Vec<String> =
        accounts.iter().map(|account| account["address"].as_str().unwrap().to_owned()).collect();
    addresses.sort();
    addresses
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_of_the_tenant_and_returns_no_credential() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    for address in ["Pro.Name@inbox.localhost", "box@ships.example"] {
        let created = create(&app, address, "pass123").await.expect(201);
        assert_eq!(created, json!({ "id": created["id"], "address": address.to_lowercase() }));
        let signed_in = app.sign_in(address, "pass123").await.expect(200);
        assert_eq!(signed_in["id"], created["id"]);
        let jwt = signed_in["token"].as_str().unwrap();
        let me = app.request(Method::GET, "/api/me").bearer(jwt).send().await.expect(200);
        assert_eq!(me["role"], "pro");
    }
    assert_eq!(addresses(&app).await, ["box@ships.example", "pro.name@inbox.localhost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_for_a_session() {
    let app = App::start().await;
    let session = &app.session(&app.tenant.pro).await;
    let body = json!({ "address": "name@inbox.localhost", "password": "pass123" });
    let created = app.request(Method::POST, PATH).bearer(session).json(&body).send().await;
    assert_eq!(created.status, 201);
    assert_eq!(addresses(&app).await, ["name@inbox.localhost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_what_the_creation_with_a_token_rejects() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "taken@inbox.localhost").await;
    for address in ["a", "a b@inbox.localhost", "admin@inbox.localhost", "a@theirs.example", "a@no.example"] {
        create(&app, address, "pass123").await.assert_api_error(400, "invalid_address");
    }
    create(&app, "a@inbox.localhost", "12345").await.assert_api_error(400, "password_too_short");
    create(&app, "a@inbox.localhost", &"x".repeat(129)).await.assert_api_error(400, "password_too_long");
    create(&app, "taken@inbox.localhost", "pass123").await.assert_api_error(409, "address_taken");
    assert!(addresses(&app).await.is_empty());
}

async fn delete(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::DELETE, &format!("/pro/api/accounts/{id}")).send().await
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

async fn list_messages(app: &App, id: impl std::fmt::Display, query: &str) -> Response {
    pro(app, Method::GET, &format!("/pro/api/accounts/{id}/messages{query}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_messages_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    assert_eq!(list_messages(&app, mailbox.id, "").await.expect(200), json!({ "messages": [], "page": 1 }));
    app.deliver("name@inbox.localhost", "Hello", "line one\r\n  line   two").await;
    let answer = list_messages(&app, mailbox.id, "").await.expect(200);
    let message = &answer["messages"][0];
    assert_time(&message["created_at"]);
    assert_eq!(answer, app.get_mailbox(&mailbox, "/api/messages").await.expect(200), "as its JWT sees it");
    // The id reads the whole message over the mailbox's own surface.
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    assert_eq!(app.get_mailbox(&mailbox, &path).await.expect(200)["subject"], "Hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_messages_newest_first_in_pages_of_30() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for i in 1..=32 {
        let message = tempmail_tests::smtp::message("a@client.example", &format!("{i}"), "");
        let reply = client.transact("a@client.example", &["name@inbox.localhost"], &message).await;
        assert_eq!(reply.code, 250);
    }
    for (query, page, newest, length) in
        [("", 1, 32, 30), ("?page=1", 1, 32, 30), ("?page=2", 2, 2, 2), ("?page=3", 3, 0, 0)]
    {
        let body = list_messages(&app, mailbox.id, query).await.expect(200);
        let messages = body["messages"].as_array().unwrap();
        let subjects: Vec<&str> = messages.iter().map(|m| m["subject"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..length).map(|i| (newest - i).to_string()).collect();
        assert_eq!((subjects, &body["page"]), (expected.iter().map(String::as_str).collect(), &json!(page)));
    }
    list_messages(&app, mailbox.id, "?before=x").await.assert_api_error(400, "invalid_request");
    let newest = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let older = list_messages(&app, mailbox.id, &format!("?before={newest}")).await.expect(200);
    assert_eq!(older["messages"][0]["subject"], "31");
    app.advance_hours(100);
    list_messages(&app, mailbox.id, &format!("?before={newest}"))
        .await
        .assert_api_error(410, "email_expired");
}

/// A mailbox of another tenant, too: `matrix`.
#[tokio::test(flavor = "multi_thread")]
async fn answers_a_free_or_deleted_mailbox_like_an_unknown_one() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let deleted = app.mailbox(Some(&app.tenant.pro), "deleted@inbox.localhost").await;
    app.delete_mailbox(&deleted).await;
    for (method, below, body) in [
        (Method::DELETE, "", None),
        (Method::GET, "/messages", None),
        (Method::PUT, "/reset-password", Some(json!({ "password": "another pass" }))),
    ] {
        let ask = async |id: uuid::Uuid| {
            let request = pro(&app, method.clone(), &format!("/pro/api/accounts/{id}{below}"));
            match &body {
                Some(body) => request.json(body).send().await,
                None => request.send().await,
            }
        };
        let unknown = ask(new_id(app.clock.now())).await;
        unknown.assert_api_error(404, "not_found");
        for id in [free.id, deleted.id] {
            assert_eq!(ask(id).await.appearance(), unknown.appearance(), "{method} {below}");
        }
    }
    assert_eq!(app.sign_in(&free.address, &free.password).await.status, 200);
}
