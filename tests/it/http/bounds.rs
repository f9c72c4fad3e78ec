//! Bounds: connections per client, time for headers, passwords that wait to be hashed.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::wait::{eventually, within_deadline};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Everything that the server sends until it closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = within_deadline("the connection is closed", stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a request, reads the whole answer and returns the beginning of its status line.
async fn request_status(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    while !is_whole(&received) {
        let read = within_deadline("an answer", stream.read_buf(&mut received)).await.unwrap();
        assert!(read > 0, "the connection is closed");
    }
    String::from_utf8_lossy(&received[..12]).into_owned()
}

/// Whether the head of an answer was received, and as much after it as the head says.
fn is_whole(received: &[u8]) -> bool {
    let text = String::from_utf8_lossy(received);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
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
    assert_eq!(rest(&mut third).await, "", "it is closed at once");
    assert_eq!(request_status(&mut second).await, "HTTP/1.1 200");
    drop(first);
    eventually("the place of the first is free", || async {
        let mut third = TcpStream::connect(app.http()).await.unwrap();
        third
            .write_all(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .ok()?;
        rest(&mut third).await.contains("200 OK").then_some(())
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
