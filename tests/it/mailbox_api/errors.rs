//! Every error of `/api` is JSON with a code and a sentence.

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn routes_methods_and_bodies_that_are_not_there_or_not_right() {
    let app = App::start().await;
    for path in ["/api", "/api/nothing", "/api/messages/x/y/z", "/nothing", "/api/domains/"] {
        let answer = app.request(Method::GET, path).send().await;
        assert_eq!(answer.error(404), "not_found", "{path}");
    }
    let wrong_method = app.request(Method::DELETE, "/api/accounts").send().await;
    wrong_method.is_api_error(405, "method_not_allowed");
    assert!(wrong_method.header("allow").contains("POST"), "{}", wrong_method.header("allow"));

    let form = app.request(Method::POST, "/api/accounts").body("text/plain", "{}").send().await;
    form.is_api_error(415, "unsupported_media_type");
    let form = app.request(Method::POST, "/api/token").body("application/x-www-form-urlencoded", "a=b");
    form.send().await.is_api_error(415, "unsupported_media_type");
    let encoded = app.request(Method::POST, "/api/token").header("content-encoding", "gzip");
    encoded.body("application/json", "{}").send().await.is_api_error(415, "unsupported_media_type");

    let large = format!("{{\"address\":\"{}\"}}", "x".repeat(65 * 1024));
    let answer = app.request(Method::POST, "/api/accounts").body("application/json", large).send().await;
    answer.is_api_error(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_the_mailbox_is_closed() {
    let app = App::start().await;
    let id = "00000000-0000-7000-8000-000000000000";
    for (method, path) in [
        (Method::GET, "/api/messages".to_owned()),
        (Method::GET, format!("/api/messages/{id}")),
        (Method::DELETE, format!("/api/messages/{id}")),
        (Method::PUT, format!("/api/messages/{id}/read")),
        (Method::GET, format!("/api/messages/{id}/raw")),
        (Method::GET, format!("/api/messages/{id}/attachments/0")),
        (Method::GET, "/api/me".to_owned()),
        (Method::DELETE, "/api/me".to_owned()),
    ] {
        let answer = app.request(method, &path).send().await;
        answer.is_api_error(401, "authentication_required");
        assert!(!answer.header("www-authenticate").is_empty(), "{path}");
    }
}
