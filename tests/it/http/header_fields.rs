//! Header fields of every response: who may read it across origins, and its `x-request-id`.

use std::collections::HashSet;

use reqwest::Method;
use tempmail_tests::{App, Response};

/// What libraries add by themselves, beside the token.
const ASKED: &str = "cache-control,last-event-id,pragma,traceparent,x-api-token,x-requested-with";

async fn app() -> App {
    App::builder()
        .config(|config| {
            config.http.base_url = "https://mail.example".into();
            config.http.cors_origins = vec!["https://app.example:8443".into()];
        })
        .start()
        .await
}

async fn from_origin(app: &App, origin: &str) -> Response {
    app.request(Method::GET, "/api/domains").header("origin", origin).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn allows_only_configured_origins() {
    let app = app().await;
    for known in ["https://mail.example", "https://app.example:8443"] {
        let answer = from_origin(&app, known).await;
        assert_eq!(answer.header("access-control-allow-origin"), known);
        assert!(answer.header("access-control-expose-headers").contains("retry-after"));
        assert!(answer.header("vary").contains("origin"));
    }
    for other in ["https://evil.example", "http://mail.example", "https://app.example", "null"] {
        let answer = from_origin(&app, other).await;
        assert_eq!(answer.status, 200, "{other}: only browsers hide the response");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{other}");
        assert!(answer.header("vary").contains("origin"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_preflights_of_allowed_origins() {
    let app = app().await;
    let preflight = async |origin: &str| {
        let request = app.request(Method::OPTIONS, "/v1/inbox/a@inbox.localhost").header("origin", origin);
        let request = request.header("access-control-request-headers", ASKED);
        request.header("access-control-request-method", "GET").send().await
    };
    let known = preflight("https://mail.example").await;
    assert_eq!(known.status, 204);
    assert_eq!(known.header("access-control-allow-origin"), "https://mail.example");
    assert_eq!(known.header("access-control-allow-headers"), ASKED);
    assert!(known.header("access-control-allow-methods").contains("DELETE"));
    let other = preflight("https://evil.example").await;
    other.assert_v1_error(405, "method_not_allowed");
    assert_eq!(other.header("access-control-allow-origin"), "");
    assert_eq!(other.header("access-control-allow-headers"), "");
}

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
