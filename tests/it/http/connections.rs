//! Connections: how many a client has, the time for headers, half-closed ones, and those to the admin port, which take nothing
//! from the ports that serve.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, Fleet};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::descriptors::ManyConnections;

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

/// The client that opens connections, which is not that of the probes.
const FLOODING: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);

/// Open files of the process: fewer than there are connections.
const FILES: u64 = 512;

/// Opens connections, sends the beginning of a request over each, and shows that the process serves all of its ports.
async fn open_connections(count: usize, request: &str) {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    for process in [fleet.api(0), fleet.ingest(0)] {
        process.set_open_file_limit(FILES);
        let mut open = Vec::new();
        for _ in 0..count {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(FLOODING).unwrap();
            let connection = within_deadline("a connection", socket.connect(process.admin())).await;
            let mut connection = connection.unwrap();
            // One that the process does not serve is reset.
            let _ = connection.write_all(request.as_bytes()).await;
            open.push(connection);
        }
        assert!(process.is_ready().await, "{:?}", process.readyz().await);
        let refused = "tempmail_admin_connections_ended_total{reason=\"refused\"}";
        assert!(process.metric(refused).await > 0.0);
        fleet.deliver(0, "name@inbox.localhost", "arrives").await;
        assert_eq!(fleet.request(0, Method::GET, "/v1/config").send().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_the_admin_port_keep_nobody_from_any_port() {
    let many = ManyConnections::reserve(2_100).await;
    open_connections(many.connections, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_the_admin_port_that_do_not_end_keep_nobody_from_any_port() {
    let many = ManyConnections::reserve(2_100).await;
    open_connections(many.connections, "GET ").await;
}
