//! `GET /v1/email/<id>`

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::App;
use uuid::Uuid;

use super::{ADDRESS, multipart};

#[tokio::test(flavor = "multi_thread")]
async fn returns_an_email_in_full() {
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
            "codes",
            "created_at",
            "expires_at",
            "from",
            "from_email",
            "headers",
            "html",
            "html_body",
            "id",
            "links",
            "preview_text",
            "sender",
            "shown_text",
            "size",
            "subject",
            "text",
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
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "long", "").await;
    let id = |emails: Vec<serde_json::Value>| emails[0]["id"].as_str().unwrap().to_owned();
    let short = id(app.emails(ADDRESS).await);
    let long = id(app.emails("box@inbox.localhost").await);

    app.clock.advance(SignedDuration::from_mins(61));
    for rest in ["", "/raw", "/attachments/0"] {
        app.get(&format!("/v1/email/{short}{rest}")).await.assert_v1_error(410, "email_expired");
    }
    app.delete(&format!("/v1/email/{short}")).await.assert_v1_error(410, "email_expired");
    app.assert_inbox_is_empty(ADDRESS).await;
    assert_eq!(app.get(&format!("/v1/email/{long}")).await.status, 200);
    app.advance_hours(72);
    app.get(&format!("/v1/email/{long}")).await.assert_v1_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_or_404_by_the_age_of_an_unknown_id() {
    let app = App::start().await;
    let now = app.clock.now();
    let old = new_id(now - SignedDuration::from_mins(61));
    let fresh = new_id(now - SignedDuration::from_mins(30));
    let future = new_id(now + SignedDuration::from_hours(48));
    let random = Uuid::new_v4();
    for rest in ["", "/raw", "/attachments/0"] {
        app.get(&format!("/v1/email/{old}{rest}")).await.assert_v1_error(410, "email_expired");
        for id in [fresh, future, random, Uuid::nil(), Uuid::max()] {
            app.get(&format!("/v1/email/{id}{rest}")).await.assert_v1_error(404, "not_found");
        }
        app.get(&format!("/v1/email/no-uuid{rest}")).await.assert_v1_error(404, "not_found");
    }
    app.delete(&format!("/v1/email/{old}")).await.assert_v1_error(410, "email_expired");
    app.delete(&format!("/v1/email/{fresh}")).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_mailbox_jwt() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "mine", "").await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let answer = app.request(Method::GET, &format!("/v1/email/{id}")).bearer(&mailbox.jwt).send().await;
    answer.assert_v1_error(401, "authentication_required");
}
