//! `/api/v1/messages`

use reqwest::Method;
use serde_json::json;

use super::{mailpit, newest};
use crate::compat::texts;

#[tokio::test(flavor = "multi_thread")]
async fn lists_everything_that_the_tenant_owns() {
    let mailpit = mailpit().await;
    let app = &mailpit.app;
    app.mailbox(Some(&app.tenant.pro), "own@inbox.localhost").await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    app.deliver("own@inbox.localhost", "two", "hello").await;
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!(texts(&list["messages"], "Subject"), ["two", "one"]);
    for (field, number) in [
        ("total", 2),
        ("unread", 2),
        ("count", 2),
        ("messages_count", 2),
        ("messages_unread", 2),
        ("start", 0),
    ] {
        assert_eq!(list[field], number, "{field}");
    }
    assert_eq!(list["tags"], json!([]));
    let one = &list["messages"][1];
    assert_eq!(one["From"], json!({"Name": "Café", "Address": "hello@mailer.example"}));
    let to = json!([{"Name": "Kim", "Address": "kim@shop.example"}, {"Name": "", "Address": "lee@elsewhere.example"}]);
    assert_eq!(one["To"], to);
    assert_eq!(one["Cc"], json!([{"Name": "", "Address": "copy@elsewhere.example"}]));
    assert_eq!((&one["Bcc"], &one["ReplyTo"][0]["Address"]), (&json!([]), &json!("help@mailer.example")));
    assert_eq!((&one["MessageID"], &one["Attachments"]), (&json!("m1@mailer.example"), &json!(1)));
    assert_eq!((&one["Read"], &one["Tags"], &one["Username"]), (&json!(false), &json!([]), &json!("")));
    assert!(one["Size"].as_i64().unwrap() > 500 && one["Created"].as_str().unwrap().ends_with('Z'));
    assert!(one["Snippet"].as_str().unwrap().starts_with("Your verification code"));
    let two = &list["messages"][0];
    assert_eq!(two["Bcc"], json!([{"Name": "", "Address": "own@inbox.localhost"}]), "no field names it");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_pages_by_offset() {
    let mailpit = mailpit().await;
    for number in 0..5 {
        mailpit.app.deliver("kim@shop.example", &format!("m{number}"), "").await;
    }
    let page = mailpit.get("/api/v1/messages?start=1&limit=2").await.expect(200);
    assert_eq!(texts(&page["messages"], "Subject"), ["m3", "m2"]);
    assert_eq!((&page["start"], &page["total"]), (&json!(1), &json!(5)));
    assert_eq!(mailpit.get("/api/v1/messages?start=9").await.expect(200)["messages"], json!([]));
    for wrong in ["start=-1", "limit=x", "start=1.5"] {
        assert_eq!(mailpit.get(&format!("/api/v1/messages?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_messages_by_id_by_search_and_all() {
    let mailpit = mailpit().await;
    for subject in ["one", "two", "three"] {
        mailpit.app.deliver("kim@shop.example", subject, "").await;
    }
    let put = async |body| {
        let answer = mailpit.send(Method::PUT, "/api/v1/messages", &body).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        mailpit.get("/api/v1/messages").await.expect(200)["unread"].as_i64().unwrap()
    };
    assert_eq!(put(json!({"IDs": [newest(&mailpit).await, "unknown"], "Read": true})).await, 2);
    assert_eq!(put(json!({"Search": "subject:two", "Read": true})).await, 1);
    assert_eq!(put(json!({"Read": true})).await, 0);
    assert_eq!(put(json!({"IDs": [newest(&mailpit).await]})).await, 1);
    let answer = mailpit.request(Method::PUT, "/api/v1/messages").send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(mailpit.get("/api/v1/messages").await.expect(200)["unread"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_messages_by_id_and_all() {
    let mailpit = mailpit().await;
    for subject in ["one", "two", "three"] {
        mailpit.app.deliver("kim@shop.example", subject, "").await;
    }
    let ids = json!({"IDs": [newest(&mailpit).await, "unknown"]});
    assert_eq!(mailpit.send(Method::DELETE, "/api/v1/messages", &ids).await.text(), "ok");
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!(texts(&list["messages"], "Subject"), ["two", "one"]);
    assert_eq!(mailpit.delete("/api/v1/messages").await.text(), "ok");
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!((&list["messages"], &list["total"]), (&json!([]), &json!(0)));
    assert_eq!(mailpit.get("/api/v1/message/latest").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_the_server_is() {
    let mailpit = mailpit().await;
    mailpit.app.deliver("kim@shop.example", "one", "").await;
    let info = mailpit.get("/api/v1/info").await.expect(200);
    assert_eq!((&info["Messages"], &info["Unread"]), (&json!(1), &json!(1)));
    assert!(info["Version"].as_str().unwrap().starts_with("tempmail "));
    assert_eq!(mailpit.get("/api/v1/tags").await.expect(200), json!([]));
    assert_eq!(mailpit.get("/api/v1/webui").await.expect(200)["MessageRelay"]["Enabled"], false);
    for (method, path) in [
        (Method::POST, "/api/v1/send"),
        (Method::GET, "/api/v1/message/latest/html-check"),
        (Method::GET, "/api/v1/chaos"),
        (Method::POST, "/api/v1/message/latest/release"),
    ] {
        assert_eq!(mailpit.request(method, path).send().await.status, 404, "{path}");
    }
    assert_eq!(mailpit.request(Method::PUT, "/api/v1/tags").send().await.status, 405);
}
