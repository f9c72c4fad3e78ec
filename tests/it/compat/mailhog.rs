//! API v1 and v2 of MailHog.

use std::ops::Add as _;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
use tempmail_tests::http::percent;
use tempmail_tests::rows;

use super::{Surface, deliver};

async fn mailhog() -> Surface {
    Surface::start(DropInSurface::MailHog).await
}

/// The subjects of whole messages.
fn subjects(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["Content"]["Headers"]["Subject"][0].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_whole_messages() {
    let mailhog = mailhog().await;
    mailhog.deliver_whole("kim@shop.example", "whole").await;
    mailhog.app.deliver("kim@shop.example", "plain", "hello").await;
    let page = mailhog.get("/api/v2/messages").await.expect(200);
    assert_eq!((&page["total"], &page["count"], &page["start"]), (&json!(2), &json!(2), &json!(0)));
    assert_eq!(subjects(&page["items"]), ["plain", "whole"]);
    let [plain, whole] = [&page["items"][0], &page["items"][1]];
    assert_eq!((&plain["MIME"], &plain["Content"]["Body"]), (&json!(null), &json!("hello\r\n")));
    let from = json!({"Relays": null, "Mailbox": "bounce", "Domain": "mailer.example", "Params": ""});
    assert_eq!(whole["From"], from);
    assert_eq!(
        (&whole["To"][0]["Mailbox"], &whole["Raw"]["To"]),
        (&json!("kim"), &json!(["kim@shop.example"]))
    );
    assert!(whole["Created"].as_str().unwrap().ends_with('Z'));
    let data = whole["Raw"]["Data"].as_str().unwrap();
    assert!(data.starts_with("Return-Path: <bounce@mailer.example>") && data.contains("\r\n--m--\r\n"));
    let from = &whole["Content"]["Headers"]["From"];
    assert_eq!(from, &json!(["=?utf-8?q?Caf=C3=A9?= <hello@mailer.example>"]), "clients decode it");
    let parts = whole["MIME"]["Parts"].as_array().unwrap();
    let types: Vec<_> =
        parts.iter().map(|part| part["Headers"]["Content-Type"][0].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["text/plain; charset=utf-8", "text/html; charset=utf-8", "image/png", "application/pdf"]
    );
    assert_eq!(parts[0]["Headers"]["Content-Transfer-Encoding"], json!(["quoted-printable"]));
    assert!(parts[0]["Body"].as_str().unwrap().contains("482913=2E"), "in the encoding it was sent in");
    assert_eq!(parts[3]["Headers"]["Content-Disposition"], json!(["attachment; filename=\"bill.pdf\""]));
    let all = mailhog.get("/api/v1/messages").await.expect(200);
    assert_eq!(all, page["items"]);
    assert_eq!(
        mailhog.get(&format!("/api/v1/messages/{}", whole["ID"].as_str().unwrap())).await.expect(200),
        *whole
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_pages_by_offset() {
    let mailhog = mailhog().await;
    assert_eq!(
        mailhog.get("/api/v2/messages").await.expect(200),
        json!({"total": 0, "count": 0, "start": 0, "items": []})
    );
    for number in 0..4 {
        mailhog.app.deliver("kim@shop.example", &format!("m{number}"), "").await;
    }
    let page = mailhog.get("/api/v2/messages?start=1&limit=2").await.expect(200);
    assert_eq!((&page["total"], &page["count"], &page["start"]), (&json!(4), &json!(2), &json!(1)));
    assert_eq!(subjects(&page["items"]), ["m2", "m1"]);
    assert_eq!(mailhog.get("/api/v2/messages?limit=x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_by_sender_recipient_and_content() {
    let mailhog = mailhog().await;
    mailhog.deliver_whole("kim@shop.example", "whole").await;
    mailhog.app.deliver("lee@shop.example", "plain", "pay today").await;
    for (kind, query, expected) in [
        ("from", "bounce@mailer.example", vec!["whole"]),
        ("from", "ADA@client", vec!["plain"]),
        ("to", "kim@", vec!["whole"]),
        ("to", "shop.example", vec!["plain", "whole"]),
        ("containing", "482913", vec!["whole"]),
        ("containing", "pay today", vec!["plain"]),
        ("containing", "nothing like it", vec![]),
    ] {
        let path = format!("/api/v2/search?kind={kind}&query={}", percent(query));
        let found = mailhog.get(&path).await.expect(200);
        assert_eq!(subjects(&found["items"]), expected, "{kind} {query}");
        assert_eq!((&found["total"], &found["count"]), (&json!(expected.len()), &json!(expected.len())));
    }
    let one = mailhog.get("/api/v2/search?kind=to&query=shop&limit=1").await.expect(200);
    assert_eq!((&one["total"], &one["count"]), (&json!(2), &json!(1)));
    for wrong in ["kind=body&query=x", "kind=to", "query=x"] {
        assert_eq!(mailhog.get(&format!("/api/v2/search?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_messages_and_parts() {
    let mailhog = mailhog().await;
    mailhog.deliver_whole("kim@shop.example", "whole").await;
    let list = mailhog.get("/api/v1/messages").await.expect(200);
    let id = list[0]["ID"].as_str().unwrap();
    let raw = mailhog.get(&format!("/api/v1/messages/{id}/download")).await;
    assert_eq!((raw.status, raw.header("content-type")), (200, "message/rfc822"));
    assert_eq!(raw.text(), list[0]["Raw"]["Data"].as_str().unwrap());
    for (part, content_type, body) in [(2, "image/png", "image"), (3, "application/pdf", "hello")] {
        let answer = mailhog.get(&format!("/api/v1/messages/{id}/mime/part/{part}/download")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, content_type));
        assert_eq!(answer.text(), body);
        assert!(answer.header("content-disposition").starts_with("attachment"));
        assert!(answer.header("content-security-policy").starts_with("sandbox"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    for missing in ["4", "x", "-1"] {
        let answer = mailhog.get(&format!("/api/v1/messages/{id}/mime/part/{missing}/download")).await;
        assert_eq!(answer.status, 404, "{missing}");
    }
    for path in ["/api/v1/messages/x", "/api/v1/messages/x/download", "/api/v2/jim"] {
        assert_eq!(mailhog.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_one_message_and_all() {
    let mailhog = mailhog().await;
    for subject in ["one", "two"] {
        mailhog.app.deliver("kim@shop.example", subject, "").await;
    }
    let list = mailhog.get("/api/v1/messages").await.expect(200);
    let path = format!("/api/v1/messages/{}", list[0]["ID"].as_str().unwrap());
    let deleted = mailhog.delete(&path).await;
    assert_eq!((deleted.status, deleted.body.as_slice()), (200, &b""[..]));
    assert_eq!(mailhog.delete(&path).await.status, 404);
    assert_eq!(subjects(&mailhog.get("/api/v1/messages").await.expect(200)), ["one"]);
    let release = mailhog.send(Method::POST, &format!("{path}/release"), &json!({})).await;
    assert_eq!(release.status, 404);
    assert_eq!(mailhog.delete("/api/v1/messages").await.status, 200);
    assert_eq!(mailhog.get("/api/v1/messages").await.expect(200), json!([]));
}

/// Messages of a list that is too long for the buffers of a connection, each of them long, too.
const LONG_LIST: i64 = 100;

/// Opens a list of long messages, has `end` end the right to them once the first octets are there, and returns how many octets
/// came until the connection broke off.
async fn read_while_ending(path: &str, end: impl AsyncFnOnce(&Surface)) -> usize {
    let mailhog = mailhog().await;
    let address = "kim@shop.example";
    let message = format!("Subject: long\r\n\r\n{}", "x".repeat(70).add("\r\n").repeat(10_000));
    deliver(&mailhog.app, address, message.as_bytes()).await;
    rows::copy_newest_message(&mailhog.app.pool, address, LONG_LIST).await;
    let mut list = mailhog.request(Method::GET, path).open().await.expect("the server answers");
    assert_eq!(list.head.status, 200);
    let mut read = list.next_chunk().await.expect("the list begins").expect("it has a message").len();
    end(&mailhog).await;
    loop {
        match list.next_chunk().await {
            Ok(Some(chunk)) => read += chunk.len(),
            Ok(None) => panic!("the list went on to its end, after {read} octets"),
            Err(_broken_off) => return read,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn breaks_a_list_off_when_its_token_is_revoked_or_the_tenant_suspended() {
    // Each message is shown with its body and its raw data.
    let whole = usize::try_from(LONG_LIST).unwrap() * 1_400_000;
    for path in
        ["/api/v1/messages", "/api/v2/messages?limit=250", "/api/v2/search?kind=to&query=kim&limit=250"]
    {
        let read = read_while_ending(path, async |mailhog| {
            let revoked = sqlx::query("UPDATE api_token SET revoked_at = created_at WHERE surfaces <> '{}'");
            revoked.execute(&mailhog.app.pool).await.expect("the token is revoked");
        });
        let read = read.await;
        assert!(read < whole / 2, "{path}: {read} octets");
    }
    let read = read_while_ending("/api/v1/messages", async |mailhog| {
        rows::suspend_tenant(&mailhog.app.pool, mailhog.app.tenant.id).await;
    });
    assert!(read.await < whole / 2);
}
