//! `GET /v1/email/<id>/raw`

use tempmail_tests::{App, SmtpClient, send_mail};

use super::super::{ADDRESS, MULTIPART, multipart};

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_message_as_received_after_its_trace_fields() {
    let app = App::start().await;
    let id = multipart(&app).await;
    let raw = app.get(&format!("/v1/email/{id}/raw")).await;
    assert_eq!((raw.status, raw.media_type()), (200, "message/rfc822"));
    let text = raw.text();
    assert!(text.starts_with("Return-Path: <ada@client.example>\r\nReceived: "), "{text}");
    let trace = text.strip_suffix(MULTIPART).expect("the message itself is unchanged");
    assert!(trace.contains("for <ship@inbox.localhost>"), "one recipient may be named: {trace}");
    let summary = &app.emails(ADDRESS).await[0];
    assert_eq!(summary["size"], raw.body.len());
    assert_eq!(app.get(&format!("/v1/email/{id}")).await.expect(200)["size"], raw.body.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_an_empty_sender_for_the_null_reverse_path() {
    let app = App::start().await;
    let reply = send_mail(app.smtp(), "", ADDRESS, b"Subject: bounce\r\n\r\n").await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.get(&format!("/v1/email/{id}")).await.expect(200)["sender"], "");
    let raw = app.get(&format!("/v1/email/{id}/raw")).await.text();
    assert!(raw.starts_with("Return-Path: <>\r\n"), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_leading_dots_as_sent() {
    let app = App::start().await;
    let message = b"Subject: dots\r\n\r\n.\r\n..\r\n...x\r\n.end\r\n";
    send_mail(app.smtp(), "a@client.example", ADDRESS, message).await;
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();
    assert!(app.get(&format!("/v1/email/{id}/raw")).await.body.ends_with(message));
}

#[tokio::test(flavor = "multi_thread")]
async fn omits_recipients_from_the_trace_of_a_mail_to_several() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let recipients = ["first@inbox.localhost", "second@inbox.localhost"];
    let reply = client.transact("a@client.example", &recipients, b"Subject: two\r\n\r\nbody\r\n").await;
    assert_eq!(reply.code, 250, "{reply:?}");
    for recipient in recipients {
        let email = &app.emails(recipient).await[0];
        let raw = app.get(&format!("/v1/email/{}/raw", email["id"].as_str().unwrap())).await;
        let text = raw.text();
        assert!(!text.contains("first") && !text.contains("second") && !text.contains(" for <"), "{text}");
        assert_eq!(email["size"], raw.body.len());
    }
}
