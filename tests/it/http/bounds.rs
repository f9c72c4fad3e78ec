//! Bounds: connections per client, time for headers, passwords that wait to be hashed.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::wait::within_deadline;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Everything that the server sends until it closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = within_deadline("the connection is closed", stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn request_status(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    within_deadline("an answer", stream.read_exact(&mut head)).await.unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_a_connection_whose_headers_do_not_end() {
    let app = App::builder().config(|config| config.http.header_seconds = 1).start().await;
    for unfinished in ["", "GET /v1/config HTT", "GET /v1/config HTTP/1.1\r\nHost: localhost\r\nX: "] {
        let mut stream = TcpStream::connect(app.http()).await.unwrap();
        stream.write_all(unfinished.as_bytes()).await.unwrap();
        let received = rest(&mut stream).await;
        assert!(!received.contains("200 OK"), "{received}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_connections_of_a_client() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.http.connections_per_client = 2;
        })
        .start()
        .await;
    let mut first = TcpStream::connect(app.http()).await.unwrap();
    let mut second = TcpStream::connect(app.http()).await.unwrap();
    assert_eq!(request_status(&mut first).await, "HTTP/1.1 200");
    assert_eq!(request_status(&mut second).await, "HTTP/1.1 200");
    let mut third = TcpStream::connect(app.http()).await.unwrap();
    assert_eq!(rest(&mut third).await, "");
    drop(first);
    // The slot is free once the server has seen the end of the first.
    tempmail_tests::wait::eventually("another connection is served", || async {
        let mut another = TcpStream::connect(app.http()).await.ok()?;
        another.write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut head = [0; 12];
        another.read_exact(&mut head).await.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_503_when_too_many_passwords_wait_to_be_hashed() {
    let app = App::start().await;
    let body = json!({ "address": "nobody@inbox.localhost", "password": "pass123" });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let tries = (0..cores + 64 + 200).map(|_| app.request(Method::POST, "/api/token").json(&body).send());
    let answers = join_all(tries).await;
    let (rejected, checked): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 503);
    assert!(!rejected.is_empty() && checked.len() >= 64, "{} were rejected", rejected.len());
    for answer in rejected {
        answer.assert_api_error(503, "unavailable");
        assert!(!answer.header("retry-after").is_empty());
    }
    for answer in checked {
        answer.assert_api_error(401, "invalid_credentials");
    }
}
