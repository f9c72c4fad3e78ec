//! A WebSocket (RFC 6455), and what came while there was none.

use std::convert::Infallible;

use super::{Client, Ended, Place, Wire, content_length};
use crate::realtime::crowd::Shared;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// How a WebSocket begins, and what its messages are.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// Path.
    pub target: &'static str,
    /// What the client sends first.
    pub hello: String,
    /// What is in the answer to it.
    pub welcome: &'static str,
    /// A message that is answered by itself.
    pub echo: Option<&'static str>,
    /// Where a client that comes back asks for what came meanwhile, and with which header field.
    pub missed: Option<(&'static str, String)>,
}

pub(super) async fn follow(
    client: &Client,
    shared: &Shared,
    greeting: &Greeting,
    place: &mut Place,
) -> Result<Infallible, Ended> {
    let Greeting { target, hello, welcome, echo, missed } = greeting;
    let mut wire = Wire::connect(shared.server, client.number).await?;
    let host = shared.server;
    let upgrade = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    wire.send(upgrade.as_bytes()).await?;
    let head = wire.head().await?;
    if head.status != 101 {
        return Err(Ended::Status(head.status));
    }
    wire.send(&frame(TEXT, hello.as_bytes())).await?;
    let was_open = place.was_open;
    loop {
        let (kind, payload) = read_frame(&mut wire).await?;
        match kind {
            TEXT => {
                let text = String::from_utf8(payload).map_err(|_| Ended::Malformed)?;
                shared.ledger.seen(client.number, &text, wire.at);
                if echo.is_some_and(|echo| text.trim_end() == echo) {
                    wire.send(&frame(TEXT, text.as_bytes())).await?;
                }
                if !place.is_open && text.contains(welcome) {
                    place.open(shared);
                    if let (true, Some((target, credential))) = (was_open, missed) {
                        list(client, shared, target, credential).await?;
                    }
                }
            }
            PING => wire.send(&frame(PONG, &payload)).await?,
            CLOSE => {
                let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                return Err(Ended::Goodbye(code));
            }
            _ => {}
        }
    }
}

/// Asks once for what is there: nothing was pushed while the client was away.
async fn list(client: &Client, shared: &Shared, target: &str, credential: &str) -> Result<(), Ended> {
    let mut wire = Wire::connect(shared.server, client.number).await?;
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {}\r\n{credential}\r\nConnection: close\r\n\r\n",
        shared.server
    );
    wire.send(request.as_bytes()).await?;
    let head = wire.head().await?;
    if head.status != 200 {
        return Err(Ended::Status(head.status));
    }
    let body = wire.octets(content_length(&head)?).await?;
    shared.ledger.found(client.number, &String::from_utf8_lossy(&body), wire.at);
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
async fn read_frame(wire: &mut Wire) -> Result<(u8, Vec<u8>), Ended> {
    let head = wire.octets(2).await?;
    let length = match head[1] {
        126 => {
            let length = wire.octets(2).await?;
            usize::from(length[0]) << 8 | usize::from(length[1])
        }
        length @ ..126 => usize::from(length),
        _ => return Err(Ended::Malformed),
    };
    Ok((head[0] & 0x0f, wire.octets(length).await?))
}
