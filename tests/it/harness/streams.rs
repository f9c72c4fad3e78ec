//! The event stream format, by examples and corner cases of the HTML standard (9.2.6), and the WebSocket client.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tempmail_tests::http::Request;
use tempmail_tests::sse::{Block, Event, Parser};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{EventStream, WebSocket, http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_async};

fn blocks(stream: &[u8]) -> Vec<Block> {
    let mut parser = Parser::default();
    parser.push(stream);
    std::iter::from_fn(|| parser.block()).collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn data(data: &str) -> Block {
    Block { data: text(data), ..Block::default() }
}

#[test]
fn parses_the_examples_of_the_standard() {
    assert_eq!(blocks(b"data: YHOO\ndata: +2\ndata: 10\n\n"), [data("YHOO\n+2\n10")]);
    let stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event";
    let comment = Block { comments: vec!["test stream".to_owned()], ..Block::default() };
    let first = Block { id: text("1"), ..data("first event") };
    let second = Block { id: text(""), ..data("second event") };
    assert_eq!(blocks(stream), [comment, first, second], "the third has no empty line after it");
    assert_eq!(blocks(b"data\n\ndata\ndata\n\ndata:"), [data(""), data("\n")]);
    assert_eq!(blocks(b"data:test\n\ndata: test\n\n"), [data("test"), data("test")]);
}

#[test]
fn parses_all_line_endings_in_any_chunks() {
    let whole = "\u{feff}event: a\r\ndata: é\rdata: y\n\r\nid: 7\rretry: 30\r\r\ndata: z\r\n\r\n".as_bytes();
    let first = Block { event: text("a"), ..data("é\ny") };
    let second = Block { id: text("7"), retry: Some(30), ..Block::default() };
    let expected = [first, second, data("z")];
    assert_eq!(blocks(whole), expected);
    for at in 0..whole.len() {
        let mut parser = Parser::default();
        parser.push(&whole[..at]);
        parser.push(&whole[at..]);
        assert_eq!(std::iter::from_fn(|| parser.block()).collect::<Vec<_>>(), expected, "cut at {at}");
    }
}

#[test]
fn ignores_unknown_fields_and_invalid_values() {
    let stream = b"id: a\0b\nretry: 5s\nother: x\nEVENT: x\n data: x\ndata: y\n\n";
    assert_eq!(blocks(stream), [data("y")]);
    assert_eq!(blocks(b"\n\nother: x\n\n"), []);
}

#[tokio::test]
async fn remembers_an_id_without_data_and_dispatches_no_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let length = connection.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        connection
            .write_all(b"retry: 3000\nid: one\n\ndata: x\n\nevent: e\nid: two\ndata: y\n\nid: 3")
            .await
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let request = Request::new(&http::client(), reqwest::Method::GET, &url).header("last-event-id", "zero");
    let mut stream = EventStream::open(request).await;
    let event =
        |name: &str, id: &str, data: &str| Event { name: name.into(), id: id.into(), data: data.into() };
    assert_eq!(stream.next().await, event("message", "one", "x"));
    assert_eq!(stream.retry(), Some(3000));
    assert_eq!(stream.next().await, event("e", "two", "y"));
    assert_eq!(stream.try_next().await, None);
    assert_eq!(stream.last_event_id(), "two", "what has no empty line after it is not said");
    assert!(stream.ended().await.is_complete);
    assert!(serve.await.unwrap().contains("last-event-id: zero"));
}

type Server = WebSocketStream<TcpStream>;

/// A server for one client.
async fn serve<F: Future<Output = ()> + Send>(
    server: impl FnOnce(Server) -> F + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        server(accept_async(stream).await.unwrap()).await;
    });
    (address, task)
}

async fn received(server: &mut Server) -> Option<Message> {
    within_deadline("something from the client", server.next()).await.map(Result::unwrap)
}

#[tokio::test]
async fn reports_messages_pings_and_the_close_as_sent() {
    let (address, task) = serve(|mut server| async move {
        let auth = received(&mut server).await.unwrap().into_text().unwrap();
        assert_eq!(auth.as_str(), json!({"type": "auth", "token": "jwt"}).to_string());
        server.send(Message::Ping(Bytes::from_static(b"1"))).await.unwrap();
        assert_eq!(received(&mut server).await, Some(Message::Pong(Bytes::from_static(b"1"))));
        assert_eq!(received(&mut server).await, Some(Message::binary(vec![7])));
        server.send(Message::text(r#"{"error":"invalid_token"}"#)).await.unwrap();
        let frame = CloseFrame { code: CloseCode::Policy, reason: "".into() };
        server.close(Some(frame)).await.unwrap();
        while within_deadline("the end", server.next()).await.is_some() {}
    })
    .await;
    let mut client = WebSocket::to(address).connect().await;
    client.auth("jwt").await;
    assert_eq!(client.next_frame().await, Frame::Ping);
    client.send_binary([7]).await;
    client.assert_refused("invalid_token").await;
    within_deadline("the server is content", task).await.unwrap();
}

#[tokio::test]
async fn muted_client_sends_no_pongs_and_keeps_reading() {
    let (address, task) = serve(|mut server| async move {
        server.send(Message::Ping(Bytes::new())).await.unwrap();
        server.send(Message::text("1")).await.unwrap();
        assert!(
            within_deadline("the end", server.next()).await.is_none_or(|next| next.is_err()),
            "nothing was sent"
        );
    })
    .await;
    let mut client = WebSocket::to(address).connect().await;
    client.mute();
    assert_eq!(client.next_json().await, json!(1));
    drop(client);
    within_deadline("the server is content", task).await.unwrap();
}

#[tokio::test]
async fn reports_a_dropped_connection_as_its_end() {
    let (address, task) = serve(|server| async move { drop(server) }).await;
    let mut client = WebSocket::to(address).connect().await;
    assert_eq!(client.next_frame().await, Frame::End);
    within_deadline("the server is content", task).await.unwrap();
}

#[tokio::test]
async fn sends_raw_bytes_unchanged() {
    let (address, task) = serve(|mut server| async move {
        let garbage = within_deadline("something from the client", server.next()).await;
        assert!(garbage.unwrap().is_err(), "a reserved opcode, not masked");
    })
    .await;
    let mut client = WebSocket::to(address).connect().await;
    client.send_raw(&[0x83, 0]).await;
    within_deadline("the server is content", task).await.unwrap();
}
