//! `x-request-id` of every response.

use std::collections::HashSet;

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn gives_every_response_its_own_id() {
    let app = App::start().await;
    let mut ids = HashSet::new();
    for path in ["/api/domains", "/v1/config", "/api/messages", "/nothing", "/v1/nothing"] {
        let answer = app.request(Method::GET, path).header("x-request-id", "chosen-by-a-client").send().await;
        let id = answer.header("x-request-id").to_owned();
        assert!(uuid::Uuid::try_parse(&id).is_ok(), "{path}: {id}");
        assert!(ids.insert(id), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_request_id_of_a_trusted_proxy() {
    let app = App::builder()
        .config(|config| config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start()
        .await;
    let of = async |id: &str| {
        let answer = app.request(Method::GET, "/api/domains").header("x-request-id", id).send().await;
        answer.header("x-request-id").to_owned()
    };
    assert_eq!(of("edge-7f.3:1_a").await, "edge-7f.3:1_a");
    assert_ne!(of("name@inbox.localhost").await, "name@inbox.localhost");
}
