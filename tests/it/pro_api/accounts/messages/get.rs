//! `GET /pro/api/accounts/{id}/messages`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{App, Response, SmtpClient};

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_all_unknown, assert_time, pro, unknown_ids};

async fn list(app: &App, id: impl std::fmt::Display, query: &str) -> Response {
    pro(app, Method::GET, &format!("/pro/api/accounts/{id}/messages{query}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(
        Method::GET,
        "/pro/api/accounts/019a0000-0000-7000-8000-000000000000/messages",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_messages_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    assert_eq!(list(&app, mailbox.id, "").await.expect(200), json!({ "messages": [], "page": 1 }));
    app.deliver("name@inbox.localhost", "Hello", "line one\r\n  line   two").await;
    let answer = list(&app, mailbox.id, "").await.expect(200);
    let message = &answer["messages"][0];
    assert_time(&message["created_at"]);
    let expected = json!({
        "id": message["id"],
        "sender": "ada@client.example",
        "from": "Ada <ada@client.example>",
        "subject": "Hello",
        "preview_text": "line one line two",
        "size": message["size"],
        "created_at": message["created_at"],
        "is_read": false,
    });
    assert_eq!(answer, json!({ "messages": [expected], "page": 1 }));
    assert_eq!(answer, app.get_mailbox(&mailbox, "/api/messages").await.expect(200), "as its JWT sees it");
    // The id reads the whole message over the mailbox's own surface.
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    assert_eq!(app.get_mailbox(&mailbox, &path).await.expect(200)["subject"], "Hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_newest_first_in_pages_of_30() {
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
        let body = list(&app, mailbox.id, query).await.expect(200);
        let messages = body["messages"].as_array().unwrap();
        let subjects: Vec<&str> = messages.iter().map(|m| m["subject"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..length).map(|i| (newest - i).to_string()).collect();
        assert_eq!((subjects, &body["page"]), (expected.iter().map(String::as_str).collect(), &json!(page)));
    }
    for query in ["?page=0", "?page=-1", "?page=x", "?page=", "?page=101", "?before=x"] {
        list(&app, mailbox.id, query).await.assert_api_error(400, "invalid_request");
    }
    let newest = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let older = list(&app, mailbox.id, &format!("?before={newest}")).await.expect(200);
    assert_eq!(older["messages"][0]["subject"], "31");
    app.advance_hours(100);
    list(&app, mailbox.id, &format!("?before={newest}")).await.assert_api_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn omits_expired_messages() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "kept 72 h", "").await;
    app.advance_hours(71);
    assert_eq!(list(&app, mailbox.id, "").await.expect(200)["messages"].as_array().unwrap().len(), 1);
    app.advance_hours(1);
    assert_eq!(list(&app, mailbox.id, "").await.expect(200), json!({ "messages": [], "page": 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_mailbox_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    for address in ["theirs@inbox.localhost", "free@inbox.localhost"] {
        app.deliver(address, "not yours", "").await;
    }
    let mut ids = unknown_ids(&app);
    ids.extend([theirs.id.to_string(), free.id.to_string()]);
    assert_all_unknown(&ids, async |id| list(&app, id, "").await).await;
}
