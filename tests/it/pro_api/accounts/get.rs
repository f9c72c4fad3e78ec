//! `GET /pro/api/accounts`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_time, pro};

async fn list(app: &App, query: &str) -> Vec<Value> {
    let answer = pro(app, Method::GET, &format!("/pro/api/accounts{query}")).send().await.expect(200);
    let accounts = answer["accounts"].as_array().unwrap().clone();
    assert_eq!(answer, json!({ "accounts": accounts }));
    accounts
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::GET, "/pro/api/accounts").await;
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
    for query in [
        "?page=0",
        "?page=-1",
        "?page=x",
        "?page=",
        "?page=1.5",
        "?page=1&page=2",
        "?page=101",
        "?page=99999999999999999999",
    ] {
        let answer = pro(&app, Method::GET, &format!("/pro/api/accounts{query}")).send().await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains("page"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn omits_foreign_free_and_removed_mailboxes() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let removed = app.mailbox(Some(&app.tenant.pro), "removed@inbox.localhost").await;
    let deleted = app.request(Method::DELETE, "/api/me").bearer(&removed.jwt).send().await;
    assert_eq!(deleted.status, 204);
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
