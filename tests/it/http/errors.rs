//! Errors of every surface: rejected bodies, and an outage of Postgres.

use reqwest::Method;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Asserts an error in the format of the path's surface.
fn assert_error(path: &str, answer: &Response, status: u16, code: &str) {
    if path.starts_with("/v1") {
        answer.assert_v1_error(status, code);
    } else {
        answer.assert_api_error(status, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_415_for_another_media_type() {
    let app = App::start().await;
    for (path, media_type) in [
        ("/api/accounts", "text/plain"),
        ("/api/token", "application/x-www-form-urlencoded"),
        ("/pro/api/session", "text/json"),
    ] {
        let answer = app.request(Method::POST, path).body(media_type, "{}").send().await;
        assert_error(path, &answer, 415, "unsupported_media_type");
        let none = app.request(Method::POST, path).send().await;
        assert_error(path, &none, 415, "unsupported_media_type");
    }
    for path in ["/api/token", "/pro/api/session", "/v1/inbox/ship@inbox.localhost"] {
        let encoded = app.request(Method::POST, path).header("content-encoding", "gzip");
        let answer = encoded.body("application/json", "{}").send().await;
        assert_error(path, &answer, 415, "unsupported_media_type");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_413_for_a_body_over_64_kib() {
    let app = App::start().await;
    // The client gets the error although it still sends.
    for length in [65 << 10, 900 << 10] {
        let large = format!("{{\"address\":\"{}\"}}", "x".repeat(length));
        for path in ["/api/accounts", "/pro/api/session", "/v1/inbox/ship@inbox.localhost"] {
            let request = app.request(Method::POST, path).body("application/json", large.clone());
            assert_error(path, &request.send().await, 413, "payload_too_large");
        }
    }
}

/// Without a `Content-Length`, the body itself exceeds the limit.
#[tokio::test(flavor = "multi_thread")]
async fn returns_413_for_a_chunked_body_over_64_kib() {
    let app = App::start().await;
    let mut connection = TcpStream::connect(app.http()).await.unwrap();
    let head = "POST /api/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..100 {
        connection.write_all(format!("1000\r\n{}\r\n", " ".repeat(0x1000)).as_bytes()).await.unwrap();
    }
    connection.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within_deadline("an answer", connection.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"error\":\"payload_too_large\""), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_503_with_retry_after_while_postgres_is_down() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    proxy.cut();
    let answer = app.get("/v1/inbox/away@inbox.localhost").await;
    answer.assert_v1_error(503, "unavailable");
    assert!(!answer.header("retry-after").is_empty());
    let answer = app.get_mailbox(&mailbox, "/api/messages").await;
    answer.assert_api_error(503, "unavailable");
    let answer = app.create_mailbox(None, "new@inbox.localhost", "pass123").await;
    answer.assert_api_error(503, "unavailable");
    proxy.restore();
    eventually("reads work again", || async {
        (app.get_mailbox(&mailbox, "/api/messages").await.status == 200).then_some(())
    })
    .await;
}
