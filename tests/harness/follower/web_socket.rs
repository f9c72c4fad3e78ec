//! Follows a mailbox over the WebSocket: lists its messages once it is authenticated, while it records what is
//! pushed.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{ApiClient, Disconnect, FeedClient, FollowerState};
use crate::websocket::{Frame, WebSocket};

/// Messages on a full page.
const PAGE: usize = 30;

/// A client of the WebSocket.
#[derive(Debug)]
pub(super) struct WebSocketClient {
    api: ApiClient,
}

impl WebSocketClient {
    pub(super) fn new(api: ApiClient) -> Self {
        Self { api }
    }

    /// Records all messages of the mailbox.
    async fn list(&self, server: SocketAddr, state: &FollowerState) -> Result<(), Disconnect> {
        for page in 1.. {
            let path = format!("/api/messages?page={page}");
            let request = self.api.get(server, &path).bearer(&self.api.credential);
            let response = request.try_send().await.map_err(|_| Disconnect::Broken)?;
            if response.status != 200 {
                return Err(Disconnect::from_error(&response));
            }
            let body = response.json();
            let messages = body["messages"].as_array().expect("messages is a list");
            let mut progress = state.progress();
            for message in messages.iter().rev() {
                progress.record_listed(message);
            }
            if messages.len() < PAGE {
                break;
            }
        }
        Ok(())
    }

    /// Records what is pushed until the connection ends; sends to `authenticated` once it is authenticated.
    async fn read(
        &self,
        socket: &mut WebSocket,
        state: &FollowerState,
        authenticated: oneshot::Sender<()>,
    ) -> Disconnect {
        let mut authenticated = Some(authenticated);
        loop {
            let message: Value = match socket.frame().await {
                Frame::Text(text) => serde_json::from_str(&text).expect("a message is JSON"),
                Frame::Ping | Frame::Pong => continue,
                Frame::Close(..) | Frame::End => return Disconnect::Broken,
                Frame::Binary(bytes) => panic!("a binary message: {bytes:?}"),
            };
            match (message["type"].as_str(), message["error"].as_str()) {
                (Some("auth_ok"), None) => {
                    let _ = authenticated.take().expect("auth_ok is sent once").send(());
                }
                (Some("new_email"), None) => state.progress().record_new(&message),
                // Temporary: the permits of a dead server expire, and Postgres returns.
                (None, Some("too_many_connections" | "unavailable")) => return Disconnect::Broken,
                // The client was too late, on a busy machine.
                (None, Some("invalid_auth_message")) if authenticated.is_some() => return Disconnect::Broken,
                (None, Some(code)) => return Disconnect::Refused(code.to_owned()),
                _ => panic!("unknown message: {message}"),
            }
        }
    }
}

impl FeedClient for WebSocketClient {
    async fn run(&mut self, server: SocketAddr, state: &FollowerState) -> Disconnect {
        state.progress().attempts += 1;
        let mut socket = match WebSocket::to(server).try_connect().await {
            Ok(Ok(socket)) => socket,
            Ok(Err(response)) => return Disconnect::from_error(&response),
            Err(_) => return Disconnect::Broken,
        };
        socket.auth(&self.api.credential).await;
        let (authenticated, is_authenticated) = oneshot::channel();
        let read = self.read(&mut socket, state, authenticated);
        let list = async {
            if is_authenticated.await.is_err() {
                return std::future::pending().await;
            }
            match self.list(server, state).await {
                Ok(()) => state.progress().is_ready = true,
                Err(disconnect) => return disconnect,
            }
            std::future::pending().await
        };
        tokio::select! {
            disconnect = read => disconnect,
            disconnect = list => disconnect,
        }
    }
}
