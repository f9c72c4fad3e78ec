//! `GET /v1/email/<id>/codes`

use serde_json::json;
use tempmail_model::id::new_id;
use tempmail_tests::{App, send_mail};

use super::super::ADDRESS;

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
async fn returns_404_or_410_like_the_full_message() {
    let app = App::start().await;
    let path = |id| format!("/v1/email/{id}/codes");
    app.get(&path(new_id(jiff::Timestamp::UNIX_EPOCH))).await.assert_v1_error(410, "email_expired");
    app.get("/v1/email/no-uuid/codes").await.assert_v1_error(404, "not_found");
}
