//! Who may call `POST /mcp`, from where, and how often.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet};

use super::{Session, deliver, reqwest_client};

/// A call of `list_mail`.
fn list_call(address: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "list_mail", "arguments": {"address": address}}})
}

fn post(app: &App, path: &str) -> RequestBuilder {
    reqwest_client()
        .post(format!("http://{}{path}", app.http()))
        .header("accept", "application/json, text/event-stream")
        .json(&list_call("ship@inbox.localhost"))
}

/// Status and body of the answer.
async fn send(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Asserts an error of JSON-RPC, with the code of the interface.
async fn assert_error(request: RequestBuilder, status: u16, code: &str) {
    let (found, body) = send(request).await;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    assert_json_rpc_error(&answer);
    assert_eq!((found, answer["error"]["data"]["error"].as_str()), (status, Some(code)), "{body}");
}

fn assert_json_rpc_error(answer: &Value) {
    assert!(answer["jsonrpc"] == "2.0" && answer["id"].is_null(), "{answer}");
    assert!(answer["error"]["code"].is_i64() && answer["error"]["message"].is_string(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_a_live_token_of_either_header_and_no_other_credential() {
    let app = App::start().await;
    let live = &app.tenant.live;
    for request in [
        post(&app, "/mcp").header("x-api-token", live),
        post(&app, "/mcp").bearer_auth(live),
        post(&app, "/mcp").header("x-api-token", live).bearer_auth(live),
    ] {
        let (status, body) = send(request).await;
        assert!(status == 200 && body.contains("next_since"), "{status} {body}");
    }
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let unknown = format!("tm_live_{}", "0".repeat(64));
    assert_error(post(&app, "/mcp"), 401, "authentication_required").await;
    assert_error(post(&app, &format!("/mcp?token={live}")), 401, "authentication_required").await;
    for other in [unknown.as_str(), &app.tenant.pro, &mailbox.jwt, "x"] {
        assert_error(post(&app, "/mcp").bearer_auth(other), 401, "invalid_token").await;
    }
    assert_error(post(&app, "/mcp").header("x-api-token", live).bearer_auth(&unknown), 401, "invalid_token")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_id_gives_no_right() {
    let app = App::start().await;
    let allowed = post(&app, "/mcp").bearer_auth(&app.tenant.live).send().await.unwrap();
    assert!(allowed.status() == 200 && !allowed.headers().contains_key("mcp-session-id"), "{allowed:?}");
    assert_error(post(&app, "/mcp").header("mcp-session-id", "1"), 401, "authentication_required").await;
    for method in [Method::GET, Method::DELETE] {
        let request = reqwest_client().request(method, format!("http://{}/mcp", app.http()));
        let answer =
            request.bearer_auth(&app.tenant.live).header("mcp-session-id", "1").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.headers()["allow"]), (405, &"POST".parse().unwrap()));
        assert_json_rpc_error(&answer.json().await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_foreign_origins_and_unknown_hosts() {
    let app = App::builder()
        .config(|config| {
            config.http.cors_origins = vec!["https://friend.example".into()];
            config.http.hosts = vec!["mail.internal".into()];
        })
        .browsable()
        .start()
        .await;
    let live = &app.tenant.live;
    let own = format!("http://{}", app.http());
    for (name, value, status) in [
        ("origin", own.as_str(), 200),
        ("origin", "https://evil.example", 403),
        ("origin", "https://friend.example", 403),
        ("origin", "null", 403),
        ("host", "mail.internal", 200),
        ("host", "localhost:1", 200),
        ("host", "evil.example", 403),
    ] {
        let (found, body) = send(post(&app, "/mcp").bearer_auth(live).header(name, value)).await;
        assert_eq!(found, status, "{name}: {value}: {body}");
    }
    assert_error(post(&app, "/mcp").header("origin", "null"), 403, "origin_not_allowed").await;
    assert_error(post(&app, "/mcp").header("host", "evil.example"), 403, "host_not_allowed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_what_the_token_may_read_and_nothing_else() {
    let app = super::app(false).await;
    let other = app.another_tenant("other").await;
    app.custom_domain(&app.tenant, "ships.example").await;
    deliver(&app, "a@ships.example", b"Subject: own\r\n\r\n").await;
    deliver(&app, "a@inbox.localhost", b"Subject: shared\r\n\r\n").await;
    let session = Session::connect(&app, &app.tenant.live).await;
    let (listed, fenced) = session.success("list_mail", json!({"all": true})).await;
    assert!(
        listed["mails"].as_array().unwrap().len() == 1 && fenced.contains("| subject: own\n"),
        "{fenced}"
    );
    let id = listed["mails"][0]["id"].clone();
    let stranger = Session::connect(&app, &other.live).await;
    for (tool, arguments) in [
        ("list_mail", json!({"address": "a@ships.example"})),
        ("get_code", json!({"address": "a@ships.example", "timeout_seconds": 0})),
        ("read_mail", json!({"id": id})),
        ("make_address", json!({"domain": "ships.example"})),
    ] {
        let said = stranger.failure(tool, arguments).await;
        assert!(said.contains("(404 not_found)"), "{tool}: {said}");
    }
    let (listed, _) = stranger.success("list_mail", json!({"all": true})).await;
    assert_eq!(listed["mails"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_towards_the_rate_of_the_token() {
    let app = App::builder().config(|config| config.limits.v1_per_second = 1).start().await;
    let live = &app.tenant.live;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let request = || post(&app, "/mcp").bearer_auth(live).json(&initialize);
    let answers = futures_util::future::join_all((0..40).map(|_| send(request()))).await;
    assert!(answers.iter().any(|(status, _)| *status == 200), "{answers:?}");
    let refused =
        answers.iter().find(|(status, _)| *status == 429).expect("40 at once are too many for one a second");
    assert!(refused.1.contains("rate_limit_exceeded"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_a_wait_whose_client_went_away() {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).start().await;
    let live = &fleet.tenant.live;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_code", "arguments": {"address": "ship@inbox.localhost", "since": "0", "timeout_seconds": 300}}});
    let waiting = reqwest_client()
        .post(format!("http://{}/mcp", fleet.http(0)))
        .header("accept", "application/json, text/event-stream")
        .bearer_auth(live)
        .json(&call);
    let waiting = waiting.send().await.unwrap();
    let subscribers_are = |count: f64| {
        let api = fleet.api(0);
        async move { (api.metric("tempmail_subscribers").await == count).then_some(()) }
    };
    eventually("the call waits", || subscribers_are(1.0)).await;
    drop(waiting);
    eventually("no call waits", || subscribers_are(0.0)).await;
    let look = json!({"address": "boat@inbox.localhost", "timeout": 0});
    let look = fleet.request(0, Method::POST, "/v1/wait").live(live).json(&look);
    assert_eq!(look.send().await.status, 204, "the token's permit is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_bodies_that_are_no_message() {
    let app = App::start().await;
    let request = || {
        let request =
            reqwest_client().post(format!("http://{}/mcp", app.http())).bearer_auth(&app.tenant.live);
        request.header("accept", "application/json, text/event-stream")
    };
    assert_error(request().body("{}"), 415, "unsupported_media_type").await;
    let large = request().header("content-type", "application/json").body(" ".repeat((64 << 10) + 1));
    assert_error(large, 413, "payload_too_large").await;
    for body in ["", "{", "[]", "{\"jsonrpc\": \"2.0\"}"] {
        let (status, answer) = send(request().header("content-type", "application/json").body(body)).await;
        assert!((400..500).contains(&status), "{body}: {status}");
        assert_json_rpc_error(&serde_json::from_str(&answer).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_clients_that_accept_anything_and_on_both_paths() {
    let app = App::start().await;
    let call = |path: &str| {
        let request = reqwest_client().post(format!("http://{}{path}", app.http()));
        request.bearer_auth(&app.tenant.live).json(&list_call("ship@inbox.localhost"))
    };
    for request in [
        call("/mcp"),
        call("/mcp").header("accept", "*/*"),
        call("/mcp").header("accept", "text/html, */*;q=0.8"),
        call("/mcp/").header("accept", "application/json, text/event-stream"),
    ] {
        let (status, body) = send(request).await;
        assert!(status == 200 && body.contains("next_since"), "{status} {body}");
    }
    let (status, body) = send(call("/mcp").header("accept", "text/html")).await;
    assert_eq!(status, 406, "{body}");
    assert_json_rpc_error(&serde_json::from_str(&body).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn is_not_there_where_it_is_switched_off() {
    let app = App::builder().config(|config| config.mcp.enabled = false).start().await;
    assert_error(post(&app, "/mcp").bearer_auth(&app.tenant.live), 404, "not_found").await;
}
