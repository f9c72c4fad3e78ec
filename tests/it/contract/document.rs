//! `GET /openapi.json`, `GET /docs` and `tempmail openapi`.

use std::process::Command;

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::{App, binary};

#[tokio::test(flavor = "multi_thread")]
async fn serves_the_document_that_the_binary_prints() {
    let app = App::start().await;
    let answer = app.request(Method::GET, "/openapi.json").send().await;
    assert_eq!(answer.header("cache-control"), "public, max-age=60");
    let served = answer.expect(200);
    assert_eq!(served["openapi"], "3.1.0");

    let print = || Command::new(binary::program()).arg("openapi").output().unwrap().stdout;
    let printed = print();
    assert_eq!(serde_json::from_slice::<Value>(&printed).unwrap(), served);
    assert_eq!(print(), printed, "its order is always the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_webhooks_out_for_generators_of_clients() {
    let app = App::start().await;
    let mut whole = app.request(Method::GET, "/openapi.json").send().await.expect(200);
    let served = app.request(Method::GET, "/openapi.json?webhooks=false").send().await.expect(200);
    whole.as_object_mut().unwrap().remove("webhooks").expect("the whole document has webhooks");
    assert_eq!(served, whole);
    let printed =
        Command::new(binary::program()).args(["openapi", "--without-webhooks"]).output().unwrap().stdout;
    assert_eq!(serde_json::from_slice::<Value>(&printed).unwrap(), served);
}

/// Generators make `NewEmail` a constructor of `Email` in Go, lose what may be null in an `allOf`, and make two types of one
/// enum that is written twice.
#[tokio::test(flavor = "multi_thread")]
async fn has_nothing_that_generators_of_clients_do_not_understand() {
    let app = App::start().await;
    let document = app.request(Method::GET, "/openapi.json").send().await.expect(200);
    assert!(!document.to_string().contains("\"allOf\""));
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let constructors: Vec<_> = schemas
        .keys()
        .filter(|name| name.strip_prefix("New").is_some_and(|of| schemas.contains_key(of)))
        .collect();
    assert!(constructors.is_empty(), "{constructors:?}");
    let wait = &document["paths"]["/v1/wait"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let feature = &wait["properties"]["match"]["properties"]["has"]["items"];
    assert_eq!(feature["$ref"], "#/components/schemas/EmailFeature");
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_the_document_from_other_origins() {
    let app =
        App::builder().config(|config| config.http.base_url = "https://mail.example".into()).start().await;
    for (origin, allowed) in [("https://mail.example", "https://mail.example"), ("https://evil.example", "")]
    {
        let answer = app.request(Method::GET, "/openapi.json").header("origin", origin).send().await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renders_the_whole_document_without_scripts() {
    let app = App::start().await;
    let document = app.request(Method::GET, "/openapi.json").send().await.expect(200);
    let page = app.request(Method::GET, "/docs").send().await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("cache-control"), "public, max-age=60");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("script"), "{policy}");

    let html = page.text();
    for foreign in ["<script", "<link", "<img", "<iframe", "@import", "url(", " src=", "http://", "style=\""]
    {
        assert!(!html.contains(foreign), "{foreign}");
    }
    let (paths, webhooks) =
        (document["paths"].as_object().unwrap(), document["webhooks"].as_object().unwrap());
    for (path, item) in paths.iter().chain(webhooks) {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(html.contains(&format!("id=\"{id}\"")), "{method} {path}");
            assert!(html.contains(operation["summary"].as_str().unwrap()), "{method} {path}");
        }
        assert!(html.contains(&format!("<code>{path}</code>")), "{path}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("id=\"schema-{name}\"")), "{name}");
    }
}
