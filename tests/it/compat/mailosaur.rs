//! The API of Mailosaur.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
use tempmail_tests::Response;

use super::{Surface, texts};

async fn mailosaur() -> Surface {
    Surface::start(DropInSurface::Mailosaur).await
}

async fn search(mailosaur: &Surface, query: &str, criteria: Value) -> Response {
    mailosaur.send(Method::POST, &format!("/api/messages/search?{query}"), &criteria).await
}

/// The id of the server of a domain.
async fn server(mailosaur: &Surface, domain: &str) -> String {
    let servers = mailosaur.get("/api/servers").await.expect(200);
    let servers = servers["items"].as_array().unwrap();
    let server = servers.iter().find(|server| server["name"] == domain).unwrap();
    server["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_as_servers() {
    let mailosaur = mailosaur().await;
    let app = &mailosaur.app;
    app.custom_domain(&app.tenant, "abcd1234.shop.example").await;
    let failed = app.custom_domain(&app.tenant, "failed.example").await;
    app.end_verification(failed).await;
    let other = app.another_tenant("other").await;
    app.custom_domain(&other, "other.example").await;
    app.deliver("kim@shop.example", "one", "").await;
    let servers = mailosaur.get("/api/servers").await.expect(200);
    assert_eq!(
        texts(&servers["items"], "name"),
        ["abcd1234.shop.example", "inbox.localhost", "shop.example"]
    );
    assert_eq!(servers["items"][0]["id"], "abcd1234");
    for server in servers["items"].as_array().unwrap() {
        let id = server["id"].as_str().unwrap();
        assert_eq!(id.len(), 8, "{server}");
        assert_eq!(mailosaur.get(&format!("/api/servers/{id}")).await.expect(200), *server);
        let name = server["name"].as_str().unwrap();
        assert_eq!(server["messages"], i32::from(name == "shop.example"), "{name}");
        assert_eq!(mailosaur.get(&format!("/api/servers/{name}")).await.expect(200), *server);
    }
    assert_eq!(mailosaur.get("/api/servers/other.example").await.expect(404)["type"], "not_found");
    assert_eq!(mailosaur.send(Method::POST, "/api/servers", &json!({"name": "x"})).await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_the_api_key_as_the_user_name() {
    let mailosaur = mailosaur().await;
    let request = |user: &str, password: &str| {
        let request = mailosaur.app.drop_in_request(DropInSurface::Mailosaur, Method::GET, "/api/servers");
        request.basic(user, password).send()
    };
    assert_eq!(request(&mailosaur.token, "").await.status, 200);
    assert_eq!(request("", "").await.status, 401);
    assert_eq!(request(&mailosaur.app.tenant.live, "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_by_every_criterion() {
    let mailosaur = mailosaur().await;
    let id = server(&mailosaur, "shop.example").await;
    mailosaur.deliver_whole("kim@shop.example", "Hello World").await;
    mailosaur.app.deliver("lee@shop.example", "Invoice", "please pay").await;
    let query = format!("server={id}");
    for (criteria, expected) in [
        (json!({"sentTo": "kim@shop.example"}), vec!["Hello World"]),
        (json!({"sentTo": "KIM@shop.example", "match": "ALL"}), vec!["Hello World"]),
        (json!({"sentTo": "im@shop.example"}), vec![]),
        (json!({"sentTo": "shop.example"}), vec!["Invoice", "Hello World"]),
        (json!({"sentFrom": "hello@mailer.example"}), vec!["Hello World"]),
        (json!({"subject": "hello"}), vec!["Hello World"]),
        (json!({"body": "482913"}), vec!["Hello World"]),
        (json!({"body": "hello world"}), vec![]),
        (json!({"subject": "hello", "body": "pay"}), vec![]),
        (json!({"subject": "hello", "body": "pay", "match": "ANY"}), vec!["Invoice", "Hello World"]),
        (
            json!({"sentFrom": null, "sentTo": null, "subject": "invoice", "body": null, "match": "ALL"}),
            vec!["Invoice"],
        ),
    ] {
        let answer = search(&mailosaur, &query, criteria.clone()).await;
        assert!(!answer.header("x-ms-delay").is_empty());
        assert_eq!(texts(&answer.expect(200)["items"], "subject"), expected, "{criteria}");
    }
    let found = search(&mailosaur, &query, json!({"subject": "hello"})).await.expect(200);
    let summary = &found["items"][0];
    assert_eq!((&summary["server"], &summary["type"]), (&json!(id), &json!("Email")));
    assert_eq!(summary["from"], json!([{"name": "Café", "email": "hello@mailer.example", "phone": null}]));
    assert_eq!(
        (&summary["attachments"], &summary["to"][0]["email"]),
        (&json!(2), &json!("kim@shop.example"))
    );
    let late = format!("{query}&receivedAfter=2100-01-01T00:00:00Z");
    let late = search(&mailosaur, &late, json!({"subject": "hello"})).await;
    assert_eq!(late.expect(200)["items"], json!([]));
    let sent = search(&mailosaur, &format!("{query}&dir=Sent"), json!({"subject": "hello"})).await;
    assert_eq!(sent.expect(200)["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_is_wrong_with_a_search() {
    let mailosaur = mailosaur().await;
    let subject = || json!({"subject": "x"});
    for (query, criteria, field) in [
        ("", subject(), "server"),
        ("server=shop.example", json!({}), "sentFrom"),
        ("server=shop.example", json!({"subject": " "}), "sentFrom"),
        ("server=shop.example", json!({"subject": 1}), "subject"),
        ("server=shop.example", json!({"subject": "x", "match": "SOME"}), "match"),
        ("server=shop.example&receivedAfter=yesterday", subject(), "receivedAfter"),
        ("server=shop.example&page=-1", subject(), "page"),
        ("server=shop.example&itemsPerPage=x", subject(), "itemsPerPage"),
    ] {
        let body = search(&mailosaur, query, criteria).await.expect(400);
        assert_eq!(body["errors"][0]["field"], field, "{body}");
        assert!(body["errors"][0]["detail"][0]["description"].as_str().unwrap().len() > 10);
    }
    assert_eq!(search(&mailosaur, "server=nowhere1", subject()).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_deletes_the_messages_of_a_server() {
    let mailosaur = mailosaur().await;
    let app = &mailosaur.app;
    app.custom_domain(&app.tenant, "b.example").await;
    for number in 0..3 {
        app.deliver("kim@shop.example", &format!("m{number}"), "").await;
    }
    app.deliver("kim@b.example", "of b", "").await;
    let list = async |query: &str| {
        let list = mailosaur.get(&format!("/api/messages?server={query}")).await.expect(200);
        texts(&list["items"], "subject").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("shop.example").await, ["m2", "m1", "m0"]);
    assert_eq!(list("shop.example&page=1&itemsPerPage=2").await, ["m0"]);
    assert_eq!(mailosaur.delete("/api/messages?server=shop.example").await.status, 204);
    assert_eq!(list("shop.example").await, Vec::<String>::new());
    assert_eq!(list("b.example").await, ["of b"]);
    assert_eq!(mailosaur.delete("/api/messages").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_message_with_its_links_codes_and_files() {
    let mailosaur = mailosaur().await;
    mailosaur.deliver_whole("kim@shop.example", "Sign in").await;
    let list = mailosaur.get("/api/messages?server=shop.example").await.expect(200);
    let id = list["items"][0]["id"].as_str().unwrap();
    let message = mailosaur.get(&format!("/api/messages/{id}")).await.expect(200);
    for body in ["text", "html"] {
        assert_eq!(message[body]["codes"], json!([{"value": "482913"}]), "{body}");
        assert_eq!(message[body]["links"][0]["href"], "https://mailer.example/v?t=1", "{body}");
    }
    assert_eq!(message["html"]["links"][0]["text"], "Verify");
    assert!(message["html"]["body"].as_str().unwrap().contains("<script>"), "as received");
    assert!(message["text"]["body"].as_str().unwrap().starts_with("Your verification code is 482913."));
    assert_eq!(message["server"], server(&mailosaur, "shop.example").await);
    let metadata = &message["metadata"];
    assert_eq!(
        (&metadata["mailFrom"], &metadata["rcptTo"][0]["email"]),
        (&json!("bounce@mailer.example"), &json!("kim@shop.example"))
    );
    let fields = texts(&metadata["headers"], "field");
    assert!(fields.contains(&"Message-ID") && fields.contains(&"Subject"), "{fields:?}");
    let attachments = message["attachments"].as_array().unwrap();
    let pdf = attachments.iter().find(|attachment| attachment["fileName"] == "bill.pdf").unwrap();
    assert_eq!((&pdf["contentType"], &pdf["length"]), (&json!("application/pdf"), &json!(5)));
    let file = mailosaur.get(pdf["url"].as_str().unwrap()).await;
    assert_eq!((file.status, file.text().as_str()), (200, "hello"));
    assert!(file.header("content-security-policy").starts_with("sandbox"));
    let raw = mailosaur.get(&format!("/api/files/email/{id}")).await;
    assert_eq!((raw.status, raw.header("content-type")), (200, "message/rfc822"));
    assert_eq!(mailosaur.delete(&format!("/api/messages/{id}")).await.status, 204);
    assert_eq!(mailosaur.get(&format!("/api/messages/{id}")).await.status, 404);
    for missing in [
        "/api/files/attachments/x",
        "/api/files/email/x",
        "/api/messages/x",
        "/api/usage/limits",
        "/api/devices",
    ] {
        assert_eq!(mailosaur.get(missing).await.status, 404, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_for_an_expired_message() {
    let mailosaur = mailosaur().await;
    mailosaur.app.deliver("kim@shop.example", "one", "").await;
    let list = mailosaur.get("/api/messages?server=shop.example").await.expect(200);
    let id = list["items"][0]["id"].as_str().unwrap().to_owned();
    mailosaur.app.advance_hours(73);
    assert_eq!(mailosaur.get(&format!("/api/messages/{id}")).await.expect(410)["type"], "email_expired");
}
