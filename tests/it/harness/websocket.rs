//! The WebSocket client, with a server of another implementation.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tempmail_tests::WebSocket;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::websocket::Frame;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_async};

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
