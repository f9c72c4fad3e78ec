//! Frames that a client may send, and protocol violations.

use serde_json::json;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, WebSocket};

use super::{assert_nothing_unread, watch};

/// A raw frame: the first byte, and a payload with a zero mask.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..=125 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        length => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const PING: u8 = 0x9;

#[tokio::test(flavor = "multi_thread")]
async fn rejects_any_message_after_auth_ok() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "quiet@inbox.localhost").await;
    let again = json!({ "type": "auth", "token": mailbox.jwt }).to_string();
    for text in ["", "{}", r#"{"type":"ping"}"#, &again, &"x".repeat(5000)] {
        let mut socket = watch(&app, &mailbox).await;
        socket.send_text(text).await;
        socket.assert_refused("invalid_auth_message").await;
    }
    for bytes in [Vec::new(), vec![0; 100], vec![0; 100_000]] {
        let mut socket = watch(&app, &mailbox).await;
        socket.send_binary(bytes).await;
        socket.assert_refused("invalid_auth_message").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_frame_over_4_kib_without_reading_it() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "long@inbox.localhost").await;
    for mut socket in [WebSocket::to(app.http()).connect().await, watch(&app, &mailbox).await] {
        // The header announces 2^60 bytes; some follow.
        let mut bytes = vec![FIN | TEXT, 0x80 | 127];
        bytes.extend((1_u64 << 60).to_be_bytes());
        bytes.extend(vec![b'x'; 200_000]);
        socket.send_raw(&bytes).await;
        socket.assert_refused("invalid_auth_message").await;
    }
    // The limit is on the whole message, not on its fragments.
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.send_raw(&frame(TEXT, &[b'x'; 3000])).await;
    socket.send_raw(&frame(CONTINUATION, &[b'x'; 3000])).await;
    socket.assert_refused("invalid_auth_message").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_fragmented_message_with_pings_in_between() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "pieces@inbox.localhost").await;
    let message = json!({ "type": "auth", "token": mailbox.jwt }).to_string();
    let (first, rest) = message.as_bytes().split_at(50);
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.send_raw(&frame(TEXT, first)).await;
    socket.send_raw(&frame(FIN | PING, b"between")).await;
    assert_eq!(socket.next_frame().await, Frame::Pong);
    socket.send_raw(&frame(FIN | CONTINUATION, rest)).await;
    assert_eq!(socket.next_json().await, json!({ "type": "auth_ok" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_pings_and_ignores_unsolicited_pongs() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "ping@inbox.localhost").await;
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.ping().await;
    assert_eq!(socket.next_frame().await, Frame::Pong);
    socket.auth(&mailbox.jwt).await;
    assert_eq!(socket.next_json().await, json!({ "type": "auth_ok" }));
    for _ in 0..100 {
        socket.ping().await;
        assert_eq!(socket.next_frame().await, Frame::Pong);
    }
    socket.send_raw(&frame(FIN | 0xA, b"pong")).await;
    assert_nothing_unread(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_close_with_a_close() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "bye@inbox.localhost").await;
    for mut socket in [WebSocket::to(app.http()).connect().await, watch(&app, &mailbox).await] {
        socket.close().await;
        assert!(matches!(socket.next_frame().await, Frame::Close(..)));
        assert_eq!(socket.next_frame().await, Frame::End);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_with_the_matching_code_on_a_protocol_violation() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "broken@inbox.localhost").await;
    let mut other = watch(&app, &mailbox).await;
    let unmasked = vec![FIN | TEXT, 2, b'{', b'}'];
    for (what, bytes, code) in [
        ("no mask", unmasked, 1002),
        ("a reserved bit", frame(FIN | 0x40 | TEXT, b"{}"), 1002),
        ("a reserved opcode", frame(FIN | 0x3, b"{}"), 1002),
        ("a reserved control opcode", frame(FIN | 0xB, b""), 1002),
        ("a continuation of nothing", frame(FIN | CONTINUATION, b"{}"), 1002),
        ("a message within a message", [frame(TEXT, b"{"), frame(FIN | TEXT, b"}")].concat(), 1002),
        ("a ping in fragments", frame(PING, b""), 1002),
        ("a ping that is too long", frame(FIN | PING, &[0; 126]), 1002),
        ("a close of one byte", frame(FIN | 0x8, b"x"), 1002),
        ("no UTF-8", frame(FIN | TEXT, &[0xFF, 0xFE]), 1007),
        ("HTTP", b"GET /api/ws HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(), 1002),
    ] {
        for mut socket in [WebSocket::to(app.http()).connect().await, watch(&app, &mailbox).await] {
            socket.send_raw(&bytes).await;
            let frame = socket.next_frame().await;
            assert!(matches!(frame, Frame::Close(it, _) if it == code), "{what}: {frame:?}");
            assert_eq!(socket.next_frame().await, Frame::End, "{what}");
        }
    }
    assert_nothing_unread(&app, &mailbox, &mut other).await;
}
