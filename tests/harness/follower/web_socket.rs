//! Follows a mailbox over the WebSocket: lists its messages once it is authenticated, while it
//! notes what is pushed.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Caller, Listen, Over, State};
use crate::websocket::{Frame, WebSocket};

/// Messages on a page that is not the last.
const PAGE: usize = 30;

/// A client of the WebSocket.
#[derive(Debug)]
pub(super) struct Socket {
    caller: Caller,
}

impl Socket {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// Notes all messages of the mailbox.
    async fn list(&self, server: SocketAddr, state: &State) -> Result<(), Over> {
        for page in 1.. {
            let path = format!("/api/messages?page={page}");
            let request = self.caller.get(server, &path).bearer(&self.caller.credential);
            let answer = request.try_send().await.map_err(|_| Over::Broken)?;
            if answer.status != 200 {
                return Err(Over::of(&answer));
            }
            let body = answer.json();
            let messages = body["messages"].as_array().expect("messages is a list");
            let mut seen = state.seen();
            for message in messages.iter().rev() {
                seen.meet(message);
            }
            if messages.len() < PAGE {
                break;
            }
        }
        Ok(())
    }

    /// Notes what is pushed until the connection ends; `authenticated` is told once it is.
    async fn read(&self, socket: &mut WebSocket, state: &State, authenticated: oneshot::Sender<()>) -> Over {
        let mut authenticated = Some(authenticated);
        loop {
            let message: Value = match socket.frame().await {
                Frame::Text(text) => serde_json::from_str(&text).expect("a message is JSON"),
                Frame::Ping | Frame::Pong => continue,
                Frame::Close(..) | Frame::End => return Over::Broken,
                Frame::Binary(octets) => panic!("a binary message: {octets:?}"),
            };
            match (message["type"].as_str(), message["error"].as_str()) {
                (Some("auth_ok"), None) => {
                    let _ = authenticated.take().expect("auth_ok comes once").send(());
                }
                (Some("new_email"), None) => state.seen().give(&message),
                // The places of a server that died are free again soon, and Postgres is back.
                (None, Some("too_many_connections" | "unavailable")) => return Over::Broken,
                (None, Some(code)) => return Over::Refused(code.to_owned()),
                _ => panic!("unknown: {message}"),
            }
        }
    }
}

impl Listen for Socket {
    async fn listen(&mut self, server: SocketAddr, state: &State) -> Over {
        state.seen().attempts += 1;
        let mut socket = match WebSocket::to(server).try_connect().await {
            Ok(Ok(socket)) => socket,
            Ok(Err(answer)) => return Over::of(&answer),
            Err(_) => return Over::Broken,
        };
        socket.auth(&self.caller.credential).await;
        let (authenticated, is_authenticated) = oneshot::channel();
        let read = self.read(&mut socket, state, authenticated);
        let list = async {
            if is_authenticated.await.is_err() {
                return std::future::pending().await;
            }
            match self.list(server, state).await {
                Ok(()) => state.seen().is_ready = true,
                Err(over) => return over,
            }
            std::future::pending().await
        };
        tokio::select! {
            over = read => over,
            over = list => over,
        }
    }
}
