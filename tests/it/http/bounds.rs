//! Work is bounded: connections a client, time for headers, passwords that are hashed at once.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::wait::within_deadline;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What the server still sends until it closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut octets = Vec::new();
    // A reset says the same as an end.
    let _ = within_deadline("the connection is closed", stream.read_to_end(&mut octets)).await;
    String::from_utf8_lossy(&octets).into_owned()
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    within_deadline("an answer", stream.read_exact(&mut head)).await.unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_headers_do_not_end_is_cut_off() {
    let app = App::builder().config(|config| config.http.header_seconds = 1).start().await;
    for unfinished in ["", "GET /v1/config HTT", "GET /v1/config HTTP/1.1\r\nHost: localhost\r\nX: "] {
        let mut stream = TcpStream::connect(app.http()).await.unwrap();
        stream.write_all(unfinished.as_bytes()).await.unwrap();
        let said = rest(&mut stream).await;
        assert!(!said.contains("200 OK"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_so_many_connections_and_no_more() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.http.connections_per_client = 2;
        })
        .start()
        .await;
    let mut first = TcpStream::connect(app.http()).await.unwrap();
    let mut second = TcpStream::connect(app.http()).await.unwrap();
    assert_eq!(ask(&mut first).await, "HTTP/1.1 200");
    assert_eq!(ask(&mut second).await, "HTTP/1.1 200");
    let mut third = TcpStream::connect(app.http()).await.unwrap();
    assert_eq!(rest(&mut third).await, "");
    drop(first);
    // The place is free as soon as the server has seen the end of the first.
    tempmail_tests::wait::eventually("another connection is served", || async {
        let mut another = TcpStream::connect(app.http()).await.ok()?;
        another.write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut head = [0; 12];
        another.read_exact(&mut head).await.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_passwords_than_may_wait_are_turned_away() {
    let app = App::start().await;
    let body = json!({ "address": "nobody@inbox.localhost", "password": "pass123" });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let tries = (0..cores + 64 + 200).map(|_| app.request(Method::POST, "/api/token").json(&body).send());
    let answers = join_all(tries).await;
    let (refused, looked_at): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 503);
    assert!(!refused.is_empty() && looked_at.len() >= 64, "{} were refused", refused.len());
    for answer in refused {
        answer.is_api_error(503, "unavailable");
        assert!(!answer.header("retry-after").is_empty());
    }
    for answer in looked_at {
        answer.is_api_error(401, "invalid_credentials");
    }
}
