//! Clients that close their side after the request, as `nc -N` does, and then read the answer.

use std::net::SocketAddr;

use serde_json::Value;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The answer to a request, after which the client closes its side at once.
async fn answer(server: SocketAddr, request: &str) -> String {
    let mut connection = RawConnection::connect(server, None).await.unwrap();
    connection.send(request).await.unwrap();
    let mut stream = connection.into_stream();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn get_their_answer() {
    let app = App::builder().config(|config| config.http.body_seconds = 1).start().await;
    app.deliver("box@inbox.localhost", "Hello", "").await;
    let head = format!("host: localhost\r\nx-api-token: {}\r\n", app.tenant.live);
    let listed =
        answer(app.http(), &format!("GET /v1/emails?address=box@inbox.localhost HTTP/1.1\r\n{head}\r\n"))
            .await;
    assert!(listed.starts_with("HTTP/1.1 200 OK") && listed.contains("Hello"), "{listed}");
    let body = r#"{"address": "box@inbox.localhost"}"#;
    let post = format!(
        "POST /v1/tokens HTTP/1.1\r\n{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let minted = answer(app.http(), &post).await;
    let (_, json) = minted.split_once("\r\n\r\n").unwrap();
    let minted: Value = serde_json::from_str(json).unwrap();
    assert!(minted["token"].is_string(), "{minted}");
    let cut = answer(app.http(), &post[..post.len() - 1]).await;
    assert!(cut.starts_with("HTTP/1.1 408 "), "a body that is cut never arrives: {cut}");
}

/// Nobody can tell such a client from one that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn get_no_answer_to_a_request_that_waits() {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).start().await;
    let subscribers_are = |count: f64| {
        let api = fleet.api(0);
        async move { (api.metric("tempmail_subscribers").await == count).then_some(()) }
    };
    for path in ["/v1/inbox/box@inbox.localhost?since=0", "/v1/sse/addr?address=box@inbox.localhost"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {}\r\n\r\n", fleet.tenant.live);
        let mut connection = RawConnection::connect(fleet.http(0), None).await.unwrap();
        connection.send(&request).await.unwrap();
        let mut stream = connection.into_stream();
        eventually("the request waits", || subscribers_are(1.0)).await;
        stream.shutdown().await.unwrap();
        eventually("no request waits", || subscribers_are(0.0)).await;
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert!(!rest.contains("204 No Content"), "{rest}");
    }
}
