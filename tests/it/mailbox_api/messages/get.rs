//! `GET /api/messages`

use serde_json::{Value, json};
use tempmail_model::id::id_time;
use tempmail_tests::{App, SmtpClient};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn returns_summaries_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let nothing = app.get_mailbox(&mailbox, "/api/messages").await.expect(200);
    assert_eq!(nothing, json!({ "messages": [], "page": 1 }));
    app.deliver("name@inbox.localhost", "Hello", "line one\r\n  line   two").await;
    let body = app.get_mailbox(&mailbox, "/api/messages").await.expect(200);
    let message = &body["messages"][0];
    let raw = format!("/api/messages/{}/raw", message["id"].as_str().unwrap());
    assert_eq!(
        body,
        json!({
            "messages": [{
                "id": message["id"],
                "sender": "ada@client.example",
                "from": "Ada <ada@client.example>",
                "subject": "Hello",
                "preview_text": "line one line two",
                "size": app.get_mailbox(&mailbox, &raw).await.body.len(),
                "created_at": message["created_at"],
                "is_read": false,
            }],
            "page": 1,
        })
    );
    let id: Uuid = message["id"].as_str().unwrap().parse().unwrap();
    let created = message["created_at"].as_str().unwrap();
    assert_eq!(format!("{:.3}", id_time(id).unwrap()), created, "the id contains its creation time");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_newest_first_in_pages_of_30() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for i in 1..=65 {
        let message = tempmail_tests::smtp::message("a@client.example", &format!("{i}"), "");
        let reply = client.transact("a@client.example", &["name@inbox.localhost"], &message).await;
        assert_eq!(reply.code, 250);
    }
    for (query, newest, expected) in
        [("", 65, 30), ("?page=1", 65, 30), ("?page=2", 35, 30), ("?page=3", 5, 5)]
    {
        let body = app.get_mailbox(&mailbox, &format!("/api/messages{query}")).await.expect(200);
        let subjects: Vec<i32> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["subject"].as_str().unwrap().parse().unwrap())
            .collect();
        let wanted: Vec<i32> = (0..expected).map(|i| newest - i).collect();
        assert_eq!(subjects, wanted, "{query}");
    }
    let beyond = app.get_mailbox(&mailbox, "/api/messages?page=4").await.expect(200);
    assert!(beyond["messages"].as_array().unwrap().is_empty());
    for page in ["0", "-1", "x", "", "101", "9223372036854775807", "99999999999999999999"] {
        let answer = app.get_mailbox(&mailbox, &format!("/api/messages?page={page}")).await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains("page"));
    }
    let last = app.get_mailbox(&mailbox, "/api/messages?page=100").await.expect(200);
    assert!(last["messages"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_what_is_older_than_a_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let foreign = app.mailbox(None, "other@inbox.localhost").await;
    for subject in ["1", "2", "3"] {
        app.deliver("name@inbox.localhost", subject, "").await;
    }
    app.deliver("other@inbox.localhost", "foreign", "").await;
    let list = |query: String| {
        let (app, mailbox) = (&app, &mailbox);
        async move { app.get_mailbox(mailbox, &format!("/api/messages?{query}")).await }
    };
    let subjects = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["subject"].as_str().unwrap().to_owned()).collect()
    };
    let newest = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(subjects(&list(format!("before={newest}")).await.expect(200)), ["2", "1"]);
    assert!(subjects(&list(format!("before={newest}&page=2")).await.expect(200)).is_empty());

    for before in ["x", "", &format!("{newest}&before={newest}")] {
        list(format!("before={before}")).await.assert_api_error(400, "invalid_request");
    }
    let foreign = app.messages(&foreign).await[0]["id"].as_str().unwrap().to_owned();
    list(format!("before={foreign}")).await.assert_api_error(404, "not_found");
    app.advance_hours(2);
    list(format!("before={newest}")).await.assert_api_error(410, "email_expired");
}
