//! Followers of a scripted server.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{Feed, Follower};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};
use uuid::Uuid;

fn message(number: u128) -> Value {
    json!({"type": "new_email", "id": Uuid::from_u128(number), "subject": format!("mail {number}")})
}

fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<Uuid> {
    numbers.into_iter().map(Uuid::from_u128).collect()
}

/// A listener, and where it is.
async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Accepts a connection and reads the head of its request.
async fn request(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = within_deadline("a request", listener.accept()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

async fn answer(mut stream: TcpStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json");
    let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn events(mut stream: TcpStream, text: &str) {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(format!("{head}{text}").as_bytes()).await.unwrap();
}

fn event(id: &str, number: u128) -> String {
    format!("event: new_email\nid: {id}\ndata: {}\n\n", message(number))
}

/// What a follower received, once the script of its server ends.
async fn outcome(mut follower: Follower, server: JoinHandle<()>) -> (Vec<Uuid>, usize, String) {
    let refused = follower.refused().await;
    server.await.unwrap();
    follower.stop().await;
    (follower.received(), follower.duplicates(), refused)
}

#[tokio::test]
async fn sse_follower_resumes_from_the_last_event_id_and_counts_duplicates() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (stream, head) = request(&listener).await;
        assert!(head.starts_with("GET /v1/sse/addr?address=a%2Bb@c.example&token=secret HTTP"), "{head}");
        assert!(!head.contains("last-event-id"), "{head}");
        events(stream, &format!("retry: 3000\nid: zero\n\n{}id: two\ndata: {{", event("one", 1))).await;
        let (stream, head) = request(&listener).await;
        assert!(head.contains("last-event-id: one\r\n"), "{head}");
        answer(stream, "503 Service Unavailable", &json!({"error": "sse_unavailable"})).await;
        let (stream, _) = request(&listener).await;
        events(stream, &[event("one", 1), event("two", 2), ": ping\nid: three\n\n".into()].concat()).await;
        let (stream, head) = request(&listener).await;
        assert!(head.contains("last-event-id: three\r\n"), "{head}");
        answer(stream, "401 Unauthorized", &json!({"error": "invalid_token"})).await;
    });
    let follower = Follower::start(address, "secret", Feed::SseAddress("a+b@c.example".into()));
    assert_eq!(outcome(follower, server).await, (ids([1, 2]), 1, "invalid_token".to_owned()));
}

#[tokio::test]
async fn long_poll_follower_takes_its_first_cursor_from_an_event_stream() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (stream, head) = request(&listener).await;
        assert!(head.starts_with("GET /v1/sse/user HTTP") && head.contains("x-api-token: secret"), "{head}");
        events(stream, "id: zero\n\n").await;
        let (stream, head) = request(&listener).await;
        assert!(head.starts_with("GET /v1/domain/c.example?limit=50&since=zero HTTP"), "{head}");
        answer(stream, "200 OK", &json!({"emails": [message(2), message(1)], "next_since": "two"})).await;
        let (stream, _) = request(&listener).await;
        answer(stream, "429 Too Many Requests", &json!({"error": "token_busy"})).await;
        let (stream, head) = request(&listener).await;
        assert!(head.contains("since=two "), "{head}");
        drop(stream);
        let (mut stream, head) = request(&listener).await;
        assert!(head.contains("since=two "), "{head}");
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\nx-next-since: three\r\n\r\n")
            .await
            .unwrap();
        let (stream, head) = request(&listener).await;
        assert!(head.contains("since=three "), "{head}");
        answer(stream, "404 Not Found", &json!({"error": "not_found"})).await;
    });
    let follower = Follower::start(address, "secret", Feed::Domain("c.example".into()));
    assert_eq!(outcome(follower, server).await, (ids([1, 2]), 0, "not_found".to_owned()));
}

/// Accepts an upgrade and the `auth` message.
async fn authenticated(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = within_deadline("an upgrade", listener.accept()).await.unwrap();
    let mut socket = accept_async(stream).await.unwrap();
    let auth = socket.next().await.unwrap().unwrap().into_text().unwrap();
    assert_eq!(auth.as_str(), json!({"type": "auth", "token": "jwt"}).to_string());
    socket.send(Message::text(json!({"type": "auth_ok"}).to_string())).await.unwrap();
    socket
}

#[tokio::test]
async fn websocket_follower_lists_messages_after_each_connection() {
    let (listener, address) = listen().await;
    let (all_received, is_received) = oneshot::channel();
    let server = tokio::spawn(async move {
        let mut socket = authenticated(&listener).await;
        let (stream, head) = request(&listener).await;
        assert!(head.starts_with("GET /api/messages?page=1 HTTP"), "{head}");
        let page: Vec<Value> = (11..=40).rev().map(message).collect();
        answer(stream, "200 OK", &json!({ "messages": page })).await;
        let (stream, head) = request(&listener).await;
        assert!(head.starts_with("GET /api/messages?page=2 HTTP"), "{head}");
        answer(stream, "200 OK", &json!({"messages": [message(10)]})).await;
        socket.send(Message::text(message(40).to_string())).await.unwrap();
        socket.send(Message::text(message(41).to_string())).await.unwrap();
        drop(socket);
        let mut socket = authenticated(&listener).await;
        let (stream, _) = request(&listener).await;
        answer(stream, "200 OK", &json!({"messages": [message(42), message(41), message(10)]})).await;
        socket.send(Message::text(message(41).to_string())).await.unwrap();
        socket.send(Message::text(message(43).to_string())).await.unwrap();
        is_received.await.unwrap();
        let refusal = json!({"error": "account_disabled"});
        socket.send(Message::text(refusal.to_string())).await.unwrap();
    });
    let follower = Follower::start(address, "jwt", Feed::WebSocket);
    follower.wait_for(34).await;
    all_received.send(()).unwrap();
    let (mut received, duplicates, refused) = outcome(follower, server).await;
    received.sort_unstable();
    assert_eq!((received, duplicates), (ids(10..=43), 1), "41 was pushed twice");
    assert_eq!(refused, "account_disabled");
}

#[tokio::test]
async fn follower_switches_servers_at_once() {
    let (first, at_first) = listen().await;
    let (second, at_second) = listen().await;
    let follower = Follower::start_at(at_first, "secret", Feed::Me, Some("zero"));
    let (mut stream, _) = request(&first).await;
    follower.switch_to(at_second);
    let read = within_deadline("the end of the first connection", async { stream.read(&mut [0; 1]).await });
    assert_eq!(read.await.unwrap(), 0, "it is closed");
    let (stream, head) = request(&second).await;
    assert!(head.contains("since=zero "), "{head}");
    answer(stream, "200 OK", &json!({"emails": [message(1)], "next_since": "one"})).await;
    follower.wait_for(1).await;
    eventually("the next poll", || async { (follower.attempts() == 3).then_some(()) }).await;
    assert_eq!(follower.received(), ids([1]));
}
