//! `/api/v1/message/{id}`

use serde_json::json;

use super::{mailpit, newest};

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_message_in_full_and_marks_it_as_read() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let message = mailpit.get(&format!("/api/v1/message/{id}")).await.expect(200);
    assert_eq!((&message["ID"], &message["MessageID"]), (&json!(id), &json!("m1@mailer.example")));
    assert_eq!(message["From"]["Name"], "Café");
    assert_eq!(message["To"][0]["Address"], "kim@shop.example");
    assert_eq!(
        (&message["ReturnPath"], &message["Subject"]),
        (&json!("bounce@mailer.example"), &json!("one"))
    );
    assert_eq!(message["Date"], "2026-11-24T09:00:00.000Z");
    assert_eq!(message["ListUnsubscribe"]["Links"], json!(["https://mailer.example/u"]));
    assert!(message["Text"].as_str().unwrap().starts_with("Your verification code is 482913."));
    assert!(message["HTML"].as_str().unwrap().contains("<script>alert(1)</script>"), "as received");
    let [inline, attached] = [&message["Inline"][0], &message["Attachments"][0]];
    assert_eq!((&inline["FileName"], &inline["ContentID"]), (&json!("pic.png"), &json!("pic@m")));
    assert_eq!((&attached["ContentType"], &attached["Size"]), (&json!("application/pdf"), &json!(5)));
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(attached["Checksums"]["SHA256"], sha256);
    assert_eq!(mailpit.get("/api/v1/messages").await.expect(200)["messages"][0]["Read"], true);
    assert_eq!(mailpit.get("/api/v1/message/latest").await.expect(200)["ID"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_header_fields_raw_data_and_parts() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let headers = mailpit.get(&format!("/api/v1/message/{id}/headers")).await.expect(200);
    assert_eq!(headers["Message-Id"], json!(["<m1@mailer.example>"]));
    assert_eq!(headers["From"], json!(["=?utf-8?q?Caf=C3=A9?= <hello@mailer.example>"]));
    let raw = mailpit.get(&format!("/api/v1/message/{id}/raw")).await;
    assert_eq!((raw.status, raw.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert!(raw.text().starts_with("Return-Path: <bounce@mailer.example>") && raw.text().contains("--m--"));
    assert!(raw.header("content-security-policy").contains("sandbox"));
    let file = mailpit.get(&format!("/api/v1/message/{id}/raw?dl=1")).await;
    assert!(file.header("content-disposition").starts_with("attachment"));
    assert_eq!(file.body, raw.body);
    let message = mailpit.get(&format!("/api/v1/message/{id}")).await.expect(200);
    let part = |element: &serde_json::Value| element["PartID"].as_str().unwrap().to_owned();
    let (image, pdf) = (part(&message["Inline"][0]), part(&message["Attachments"][0]));
    let answer = mailpit.get(&format!("/api/v1/message/{id}/part/{pdf}")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    assert_eq!(answer.header("content-type"), "application/pdf");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").starts_with("sandbox"));
    let thumbnail = mailpit.get(&format!("/api/v1/message/{id}/part/{image}/thumb")).await;
    assert_eq!((thumbnail.status, thumbnail.text().as_str()), (200, "image"));
    for missing in [&format!("{pdf}/thumb"), "9", "x", "-1"] {
        let answer = mailpit.get(&format!("/api/v1/message/{id}/part/{missing}")).await;
        assert_eq!(answer.status, 404, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_what_is_no_message() {
    let mailpit = mailpit().await;
    for id in ["x", "latest", "0191d3a4-0000-7000-8000-000000000000", "%ff"] {
        for suffix in ["", "/headers", "/raw", "/part/0"] {
            let answer = mailpit.get(&format!("/api/v1/message/{id}{suffix}")).await;
            assert_eq!((answer.status, answer.media_type()), (404, "text/plain"), "{id}{suffix}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_text_of_a_message_that_has_html_only() {
    let mailpit = mailpit().await;
    let raw = b"Subject: x\r\nContent-Type: text/html\r\n\r\n<p>Hello <b>there</b></p><p style=display:none>not</p>";
    crate::compat::deliver(&mailpit.app, "kim@shop.example", raw).await;
    let message = mailpit.get("/api/v1/message/latest").await.expect(200);
    let text = message["Text"].as_str().unwrap();
    assert!(text.contains("Hello there") && !text.contains("not") && !text.contains('<'), "{text}");
    assert_eq!(message["From"], json!(null));
    assert!(mailpit.get("/view/latest.txt").await.text().contains("Hello there"));
}
