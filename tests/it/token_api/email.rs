//! `/v1/email/<id>` and what hangs below it.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::{App, SmtpClient, send_mail};
use uuid::Uuid;

const ADDRESS: &str = "ship@inbox.localhost";

/// A text, its HTML with an inline picture, and an attachment.
const MULTIPART: &str = concat!(
    "From: =?utf-8?q?Ad=C3=A9la?= <ada@client.example>\r\n",
    "To: Ship <ship@inbox.localhost>, second@elsewhere.example\r\n",
    "Subject: =?utf-8?b?xb5sdcWlb3XEjWvDvQ==?=\r\n",
    "MIME-Version: 1.0\r\n",
    "Content-Type: multipart/mixed; boundary=mixed\r\n\r\n",
    "--mixed\r\nContent-Type: multipart/related; boundary=related\r\n\r\n",
    "--related\r\nContent-Type: multipart/alternative; boundary=alternative\r\n\r\n",
    "--alternative\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain  text\r\nof two lines\r\n",
    "--alternative\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>html <img src=\"cid:pic@x\"></p>\r\n",
    "--alternative--\r\n",
    "--related\r\nContent-Type: image/png\r\nContent-ID: <pic@x>\r\nContent-Disposition: inline\r\n",
    "Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n",
    "--related--\r\n",
    "--mixed\r\nContent-Type: text/html; name=\"page.html\"\r\n",
    "Content-Disposition: attachment; filename*=utf-8''z%C3%A1znam.html\r\n\r\n<script>alert(1)</script>\r\n",
    "--mixed--\r\n",
);

async fn multipart(app: &App) -> String {
    let reply = send_mail(app.smtp(), "ada@client.example", ADDRESS, MULTIPART.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_an_email_in_full() {
    let app = App::start().await;
    let id = multipart(&app).await;
    let email = app.get(&format!("/v1/email/{id}")).await.expect(200);
    assert_eq!(email["id"], id.as_str());
    assert_eq!(email["address"], ADDRESS);
    assert_eq!(email["sender"], "ada@client.example");
    assert_eq!(email["from"], "Adéla <ada@client.example>");
    assert_eq!(email["from_email"], "ada@client.example");
    let to = email["to"].as_array().unwrap();
    assert_eq!(to.len(), 2);
    assert!(
        to[0].as_str().unwrap().contains(ADDRESS) && to[1].as_str().unwrap().contains("second@elsewhere")
    );
    assert_eq!(email["subject"], "žluťoučký");
    assert_eq!(email["preview_text"], "plain text of two lines");
    let lines: Vec<&str> = email["text_body"].as_str().unwrap().lines().collect();
    assert_eq!(lines, ["plain  text", "of two lines"]);
    assert_eq!((&email["text"], &email["html"]), (&email["text_body"], &email["html_body"]));
    assert_eq!(email["shown_text"], email["text_body"]);
    assert!(email["html_body"].as_str().unwrap().contains("<img src=\"cid:pic@x\">"), "as received");
    let headers = email["headers"].as_array().unwrap();
    let names: Vec<&str> = headers.iter().filter_map(|header| header["name"].as_str()).collect();
    for name in ["From", "To", "Subject", "MIME-Version", "Content-Type"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let created: Timestamp = email["created_at"].as_str().unwrap().parse().unwrap();
    let expires: Timestamp = email["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(expires.duration_since(created), SignedDuration::from_hours(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_for_an_expired_email_whose_row_still_exists() {
    let app = App::start().await;
    app.deliver(ADDRESS, "short", "").await;
    let path = format!("/v1/email/{}", app.emails(ADDRESS).await[0]["id"].as_str().unwrap());
    app.clock.advance(SignedDuration::from_mins(61));
    for rest in ["", "/raw", "/attachments/0"] {
        app.get(&format!("{path}{rest}")).await.assert_v1_error(410, "email_expired");
    }
    app.delete(&path).await.assert_v1_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_or_404_by_the_age_of_an_unknown_id() {
    let app = App::start().await;
    let made = |minutes: i64| new_id(app.clock.now() + SignedDuration::from_mins(minutes));
    for (id, status, code) in [
        (made(-61), 410, "email_expired"),
        (made(-30), 404, "not_found"),
        (made(48 * 60), 404, "not_found"),
        (Uuid::new_v4(), 404, "not_found"),
        (Uuid::max(), 404, "not_found"),
    ] {
        app.get(&format!("/v1/email/{id}")).await.assert_v1_error(status, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_attachments_and_serves_them_as_downloads() {
    let app = App::start().await;
    let id = multipart(&app).await;
    let email = app.get(&format!("/v1/email/{id}")).await.expect(200);
    let attachments = email["attachments"].as_array().unwrap();
    assert_eq!(attachments.len(), 2, "{attachments:?}");
    let picture = &attachments[0];
    assert_eq!(
        *picture,
        json!({ "index": 0, "filename": null, "content_type": "image/png", "size": 8, "content_id": "pic@x", "inline": true })
    );
    let page = &attachments[1];
    assert_eq!(
        (&page["index"], &page["filename"], &page["content_type"], &page["content_id"], &page["inline"]),
        (&json!(1), &json!("záznam.html"), &json!("text/html"), &json!(null), &json!(false))
    );

    let picture = app.get(&format!("/v1/email/{id}/attachments/0")).await;
    assert_eq!((picture.status, picture.media_type()), (200, "image/png"));
    assert_eq!(picture.body, b"\x89PNG\r\n\x1a\n");
    let page = app.get(&format!("/v1/email/{id}/attachments/1")).await;
    assert_eq!((page.status, page.media_type()), (200, "text/html"));
    assert!(page.text().starts_with("<script>alert(1)</script>"));
    assert_eq!(attachments[1]["size"], page.body.len());
    let disposition = page.header("content-disposition");
    assert!(disposition.starts_with("attachment"), "{disposition}");
    assert!(disposition.contains("filename*=UTF-8''z%C3%A1znam.html"), "{disposition}");
    for answer in [&picture, &page] {
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("content-security-policy").contains("sandbox"));
        assert!(answer.header("content-disposition").starts_with("attachment"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_an_unknown_index_and_400_for_a_non_integer() {
    let app = App::start().await;
    let id = multipart(&app).await;
    for index in ["2", "1000", "4294967296", "99999999999999999999"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        answer.assert_v1_error(404, "not_found");
    }
    for index in ["x", "-1", "1.0", "0x1", "%20"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        assert_eq!(answer.status, 400, "{index}");
        answer.assert_v1_error(400, "invalid_request");
    }
}

/// A code and a link in the HTML, and hidden text.
const MAIL: &str = "From: Shop <no-reply@shop.example>\r\nSubject: Confirm your address\r\n\
    MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
    <p>Your confirmation code is <b>482913</b>.</p><p style=\"display:none\">Your code is 999999.</p>\
    <p>Or confirm your address here:</p>\
    <p><a href=\"https://shop.example/confirm?t=9f8a7b6c5d4e&amp;b=2\">Confirm your address</a></p>\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_codes_and_links_of_the_full_message() {
    let app = App::start().await;
    let reply = send_mail(app.smtp(), "bounce@shop.example", ADDRESS, MAIL.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();
    let found = app.get(&format!("/v1/email/{id}/codes")).await.expect(200);
    let codes: Vec<&str> =
        found["codes"].as_array().unwrap().iter().map(|code| code["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["482913"]);
    let link = &found["links"][0];
    assert_eq!(link["url"], "https://shop.example/confirm?t=9f8a7b6c5d4e&b=2");
    assert_eq!((&link["host"], &link["host_matches_from"]), (&json!("shop.example"), &json!(true)));
    let email = app.get(&format!("/v1/email/{id}")).await.expect(200);
    assert_eq!(json!({ "codes": email["codes"], "links": email["links"] }), found);
    let shown = email["shown_text"].as_str().unwrap();
    assert!(shown.contains("482913") && !shown.contains("999999"), "{shown}");
}

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
