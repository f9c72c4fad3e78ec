//! `/api/messages`, and what is below it.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::id::id_time;
use tempmail_tests::app::Mailbox;
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

/// A mail that is one file.
const FILE: &str = "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: application/pdf\r\n\
    Content-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n%PDF\r\n";

/// A free mailbox with [`FILE`] in it, and the path of the message.
async fn with_a_file(app: &App) -> (Mailbox, String) {
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.transact("a@client.example", &["name@inbox.localhost"], FILE.as_bytes()).await;
    assert_eq!(reply.code, 250);
    let path = format!("/api/messages/{}", app.messages(&mailbox).await[0]["id"].as_str().unwrap());
    (mailbox, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_message_in_full() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name+tag@inbox.localhost", "Hello", "body text").await;
    let summary = app.messages(&mailbox).await[0].clone();
    let path = format!("/api/messages/{}", summary["id"].as_str().unwrap());
    let message = app.get_mailbox(&mailbox, &path).await.expect(200);
    let created: Timestamp = summary["created_at"].as_str().unwrap().parse().unwrap();
    let Value::Object(mut expected) = json!({
        "address": "name+tag@inbox.localhost",
        "from_email": "ada@client.example",
        "to": ["someone@client.example"],
        "text_body": "body text\r\n",
        "html_body": "",
        "headers": message["headers"],
        "attachments": [],
        "expires_at": format!("{:.3}", created + SignedDuration::from_hours(1)),
        "codes": [],
        "links": [],
    }) else {
        unreachable!("an object")
    };
    expected.extend(summary.as_object().unwrap().clone());
    assert_eq!(message, Value::Object(expected), "its summary, and these");
    let names: Vec<&str> =
        message["headers"].as_array().unwrap().iter().filter_map(|field| field["name"].as_str()).collect();
    assert_eq!(names, ["Return-Path", "Received", "From", "To", "Subject"]);
    assert_eq!(message["headers"][4], json!({ "name": "Subject", "value": "Hello" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_a_message_as_read() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name@inbox.localhost", "two", "").await;
    let id = app.messages(&mailbox).await[1]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/messages/{id}/read");
    for _ in 0..2 {
        let answer = app.request(Method::PUT, &path).bearer(&mailbox.jwt).send().await;
        assert_eq!(answer.status, 204);
    }
    let read: Vec<bool> =
        app.messages(&mailbox).await.iter().map(|message| message["is_read"].as_bool().unwrap()).collect();
    assert_eq!(read, [false, true]);
    let message = app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.expect(200);
    assert_eq!(message["is_read"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_codes_and_links_of_the_full_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let text = "Your verification code is 482913.\r\n\r\nReset your password:\r\nhttps://client.example/reset?t=9f8a7b6c5d4e";
    app.deliver("name@inbox.localhost", "Sign in", text).await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let found = app.get_mailbox(&mailbox, &format!("/api/messages/{id}/codes")).await.expect(200);
    assert_eq!(found["codes"][0]["code"], "482913");
    assert_eq!(found["links"][0]["kind"], "reset_password");
    let message = app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.expect(200);
    assert_eq!(json!({ "codes": message["codes"], "links": message["links"] }), found);
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_the_message_as_received() {
    let app = App::start().await;
    let (mailbox, path) = with_a_file(&app).await;
    let raw = app.get_mailbox(&mailbox, &format!("{path}/raw")).await;
    assert_eq!((raw.status, raw.media_type()), (200, "message/rfc822"));
    assert!(
        raw.text().ends_with(FILE) && raw.text().contains("for <name@inbox.localhost>"),
        "{}",
        raw.text()
    );
    assert_eq!(app.messages(&mailbox).await[0]["size"], raw.body.len());
    let id = path.rsplit('/').next().unwrap();
    let disposition = raw.header("content-disposition");
    assert_eq!(disposition, format!("attachment; filename=\"{id}.eml\""));
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert!(raw.header("content-security-policy").contains("sandbox"));
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_an_attachment_as_a_download() {
    let app = App::start().await;
    let (mailbox, path) = with_a_file(&app).await;
    let attachment = app.get_mailbox(&mailbox, &format!("{path}/attachments/0")).await;
    assert_eq!((attachment.status, attachment.media_type()), (200, "application/pdf"));
    assert_eq!(attachment.header("content-disposition"), "attachment; filename=\"a.pdf\"");
    assert_eq!(attachment.header("x-content-type-options"), "nosniff");
    assert!(attachment.header("content-security-policy").contains("sandbox"));
    assert!(attachment.text().starts_with("%PDF"));
    let another = app.get_mailbox(&mailbox, &format!("{path}/attachments/1")).await;
    another.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_message_and_frees_its_quota() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name@inbox.localhost", "two", "").await;
    let messages = app.messages(&mailbox).await;
    let path = format!("/api/messages/{}", messages[0]["id"].as_str().unwrap());
    let delete = || app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send();
    assert_eq!(delete().await.status, 204);
    delete().await.assert_api_error(404, "not_found");
    app.get_mailbox(&mailbox, &path).await.assert_api_error(404, "not_found");
    let left = app.messages(&mailbox).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    let me = app.get_mailbox(&mailbox, "/api/me").await.expect(200);
    assert_eq!(me["used"], left[0]["size"]);
}
