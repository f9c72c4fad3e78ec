//! A WebSocket (RFC 6455), and what came while there was none.

use std::convert::Infallible;

use super::{Disconnect, HttpConnection, Subscriber, SubscriptionState, content_length};
use crate::realtime::pool::PoolState;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// How a WebSocket begins, and what its messages are.
#[derive(Debug, Clone)]
pub struct WebSocketProtocol {
    /// Path.
    pub target: &'static str,
    /// What the client sends first.
    pub first_message: String,
    /// What is in the answer to it.
    pub confirmation: &'static str,
    /// A message that is answered by itself.
    pub echo: Option<&'static str>,
    /// Path and header field of the list that a client requests after a reconnect.
    pub missed: Option<(&'static str, String)>,
}

pub(super) async fn follow(
    client: &Subscriber,
    shared: &PoolState,
    protocol: &WebSocketProtocol,
    state: &mut SubscriptionState,
) -> Result<Infallible, Disconnect> {
    let WebSocketProtocol { target, first_message, confirmation, echo, missed } = protocol;
    let mut connection = HttpConnection::connect(shared.server, client.number).await?;
    let host = shared.server;
    let upgrade = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    connection.send(upgrade.as_bytes()).await?;
    let head = connection.head().await?;
    if head.status != 101 {
        return Err(Disconnect::Status(head.status));
    }
    connection.send(&frame(TEXT, first_message.as_bytes())).await?;
    let was_open = state.was_open;
    loop {
        let (kind, payload) = read_frame(&mut connection).await?;
        match kind {
            TEXT => {
                let text = String::from_utf8(payload).map_err(|_| Disconnect::Malformed)?;
                shared.delivery_log.seen(client.number, &text, connection.at);
                if echo.is_some_and(|echo| text.trim_end() == echo) {
                    connection.send(&frame(TEXT, text.as_bytes())).await?;
                }
                if !state.is_open && text.contains(confirmation) {
                    state.open(shared);
                    if let (true, Some((target, credential))) = (was_open, missed) {
                        list(client, shared, target, credential).await?;
                    }
                }
            }
            PING => connection.send(&frame(PONG, &payload)).await?,
            CLOSE => {
                let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                return Err(Disconnect::CloseFrame(code));
            }
            _ => {}
        }
    }
}

/// Lists the messages once, since nothing was pushed while the client was disconnected.
async fn list(
    client: &Subscriber,
    shared: &PoolState,
    target: &str,
    credential: &str,
) -> Result<(), Disconnect> {
    let mut connection = HttpConnection::connect(shared.server, client.number).await?;
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {}\r\n{credential}\r\nConnection: close\r\n\r\n",
        shared.server
    );
    connection.send(request.as_bytes()).await?;
    let head = connection.head().await?;
    if head.status != 200 {
        return Err(Disconnect::Status(head.status));
    }
    let body = connection.octets(content_length(&head)?).await?;
    shared.delivery_log.found(client.number, &String::from_utf8_lossy(&body), connection.at);
    Ok(())
}

/// A whole frame of a client, masked by zeros.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// A whole frame of a server: its kind and payload.
async fn read_frame(connection: &mut HttpConnection) -> Result<(u8, Vec<u8>), Disconnect> {
    let head = connection.octets(2).await?;
    let length = match head[1] {
        126 => {
            let length = connection.octets(2).await?;
            usize::from(length[0]) << 8 | usize::from(length[1])
        }
        length @ ..126 => usize::from(length),
        _ => return Err(Disconnect::Malformed),
    };
    Ok((head[0] & 0x0f, connection.octets(length).await?))
}
