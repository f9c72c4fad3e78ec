//! `GET /api/messages/{id}`

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::App;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_message_in_full() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name+tag@inbox.localhost", "Hello", "body text").await;
    let summary = app.messages(&mailbox).await[0].clone();
    let path = format!("/api/messages/{}", summary["id"].as_str().unwrap());
    let message = app.get_mailbox(&mailbox, &path).await.expect(200);
    let created: Timestamp = summary["created_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        message,
        json!({
            "id": summary["id"],
            "address": "name+tag@inbox.localhost",
            "sender": "ada@client.example",
            "from": "Ada <ada@client.example>",
            "from_email": "ada@client.example",
            "to": ["someone@client.example"],
            "subject": "Hello",
            "preview_text": "body text",
            "text_body": "body text\r\n",
            "html_body": "",
            "headers": message["headers"],
            "attachments": [],
            "size": summary["size"],
            "created_at": summary["created_at"],
            "expires_at": format!("{:.3}", created + SignedDuration::from_hours(1)),
            "is_read": false,
            "codes": [],
            "links": [],
        })
    );
    let names: Vec<&str> =
        message["headers"].as_array().unwrap().iter().filter_map(|field| field["name"].as_str()).collect();
    assert_eq!(names, ["Return-Path", "Received", "From", "To", "Subject"]);
    assert_eq!(message["headers"][4], json!({ "name": "Subject", "value": "Hello" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_or_404_by_the_age_of_an_unknown_id() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let old = new_id(app.clock.now() - SignedDuration::from_mins(61));
    app.get_mailbox(&mailbox, &format!("/api/messages/{old}")).await.assert_api_error(410, "email_expired");
    for id in [Uuid::new_v4().to_string(), "no-uuid".into()] {
        app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.assert_api_error(404, "not_found");
    }
    app.get_mailbox(&mailbox, "/api/messages/%FF").await.assert_api_error(400, "invalid_request");
}
