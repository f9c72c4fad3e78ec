//! `GET /pro/api/accounts/{id}/messages`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{Answer, App, SmtpClient};

use crate::pro_api::{ids_of_nothing, is_alike, is_for_pro_alone, is_time, pro};

async fn list(app: &App, id: impl std::fmt::Display, query: &str) -> Answer {
    pro(app, Method::GET, &format!("/pro/api/accounts/{id}/messages{query}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_pro_tokens_alone() {
    is_for_pro_alone(Method::GET, "/pro/api/accounts/019a0000-0000-7000-8000-000000000000/messages").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_told_as_the_interface_says() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    assert_eq!(list(&app, mailbox.id, "").await.expect(200), json!({ "messages": [], "page": 1 }));
    app.deliver("name@inbox.localhost", "Hello", "line one\r\n  line   two").await;
    let answer = list(&app, mailbox.id, "").await.expect(200);
    let message = &answer["messages"][0];
    is_time(&message["created_at"]);
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
async fn messages_are_newest_first_30_a_page() {
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
    for query in ["?page=0", "?page=-1", "?page=x", "?page="] {
        list(&app, mailbox.id, query).await.is_api_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_not_shown() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "kept 72 h", "").await;
    app.advance_hours(71);
    assert_eq!(list(&app, mailbox.id, "").await.expect(200)["messages"].as_array().unwrap().len(), 1);
    app.advance_hours(1);
    assert_eq!(list(&app, mailbox.id, "").await.expect(200), json!({ "messages": [], "page": 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_not_the_tenants_is_as_one_that_is_not_there() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    for address in ["theirs@inbox.localhost", "free@inbox.localhost"] {
        app.deliver(address, "not yours", "").await;
    }
    let mut ids = ids_of_nothing(&app);
    ids.extend([theirs.id.to_string(), free.id.to_string()]);
    let first = list(&app, &ids[0], "").await;
    first.is_api_error(404, "not_found");
    for id in ids {
        is_alike(&list(&app, id, "").await, &first);
    }
}
