//! `/v1/email/<id>` and what hangs below it.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::{App, SmtpClient, send_mail};
use uuid::Uuid;

const ADDRESS: &str = "ship@inbox.localhost";

/// A text, its HTML, a picture in it and a file beside it.
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
async fn an_email_is_told_in_full() {
    let app = App::start().await;
    let id = multipart(&app).await;
    let email = app.get(&format!("/v1/email/{id}")).await.expect(200);
    let mut keys: Vec<&String> = email.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "address",
            "attachments",
            "created_at",
            "expires_at",
            "from",
            "from_email",
            "headers",
            "html_body",
            "id",
            "preview_text",
            "sender",
            "size",
            "subject",
            "text_body",
            "to"
        ]
    );
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
async fn attachments_are_listed_and_served_as_files() {
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
async fn an_unknown_attachment_is_404_and_no_integer_400() {
    let app = App::start().await;
    let id = multipart(&app).await;
    for index in ["2", "1000", "4294967296", "99999999999999999999"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        answer.is_v1_error(404, "not_found");
    }
    for index in ["x", "-1", "1.0", "0x1", "%20"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        assert_eq!(answer.status, 400, "{index}");
        answer.is_v1_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_is_the_message_as_received_behind_its_trace() {
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
async fn the_null_reverse_path_is_an_empty_sender() {
    let app = App::start().await;
    let reply = send_mail(app.smtp(), "", ADDRESS, b"Subject: bounce\r\n\r\n").await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.get(&format!("/v1/email/{id}")).await.expect(200)["sender"], "");
    let raw = app.get(&format!("/v1/email/{id}/raw")).await.text();
    assert!(raw.starts_with("Return-Path: <>\r\n"), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dots_at_the_start_of_lines_come_back_as_sent() {
    let app = App::start().await;
    let message = b"Subject: dots\r\n\r\n.\r\n..\r\n...x\r\n.end\r\n";
    send_mail(app.smtp(), "a@client.example", ADDRESS, message).await;
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();
    assert!(app.get(&format!("/v1/email/{id}/raw")).await.body.ends_with(message));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_email_is_gone_and_the_others_stay() {
    let app = App::start().await;
    app.deliver(ADDRESS, "one", "").await;
    app.deliver(ADDRESS, "two", "").await;
    let emails = app.emails(ADDRESS).await;
    let path = format!("/v1/email/{}", emails[0]["id"].as_str().unwrap());
    assert_eq!(app.delete(&path).await.status, 204);
    app.delete(&path).await.is_v1_error(404, "not_found");
    app.get(&path).await.is_v1_error(404, "not_found");
    app.get(&format!("{path}/raw")).await.is_v1_error(404, "not_found");
    let left = app.emails(ADDRESS).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    app.advance_hours(2);
    app.get(&path).await.is_v1_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_past_its_time_is_410_though_its_row_is_there() {
    let app = App::start().await;
    app.deliver(ADDRESS, "short", "").await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "long", "").await;
    let id = |emails: Vec<serde_json::Value>| emails[0]["id"].as_str().unwrap().to_owned();
    let short = id(app.emails(ADDRESS).await);
    let long = id(app.emails("box@inbox.localhost").await);

    app.clock.advance(SignedDuration::from_mins(61));
    for rest in ["", "/raw", "/attachments/0"] {
        app.get(&format!("/v1/email/{short}{rest}")).await.is_v1_error(410, "email_expired");
    }
    app.delete(&format!("/v1/email/{short}")).await.is_v1_error(410, "email_expired");
    app.is_empty(ADDRESS).await;
    assert_eq!(app.get(&format!("/v1/email/{long}")).await.status, 200);
    app.advance_hours(72);
    app.get(&format!("/v1/email/{long}")).await.is_v1_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_id_is_answered_by_its_own_time_alone() {
    let app = App::start().await;
    let now = app.clock.now();
    let old = new_id(now - SignedDuration::from_mins(61));
    let fresh = new_id(now - SignedDuration::from_mins(30));
    let future = new_id(now + SignedDuration::from_hours(48));
    let random = Uuid::new_v4();
    for rest in ["", "/raw", "/attachments/0"] {
        app.get(&format!("/v1/email/{old}{rest}")).await.is_v1_error(410, "email_expired");
        for id in [fresh, future, random, Uuid::nil(), Uuid::max()] {
            app.get(&format!("/v1/email/{id}{rest}")).await.is_v1_error(404, "not_found");
        }
        app.get(&format!("/v1/email/no-uuid{rest}")).await.is_v1_error(404, "not_found");
    }
    app.delete(&format!("/v1/email/{old}")).await.is_v1_error(410, "email_expired");
    app.delete(&format!("/v1/email/{fresh}")).await.is_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_jwt_is_no_credential_for_an_email() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "mine", "").await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let answer = app.request(Method::GET, &format!("/v1/email/{id}")).bearer(&mailbox.jwt).send().await;
    answer.is_v1_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_of_several_recipients_names_none_of_them_in_its_trace() {
    let app = App::start().await;
    let mut client = SmtpClient::hello(app.smtp()).await;
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
