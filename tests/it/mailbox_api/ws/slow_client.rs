//! Clients that are slow to read.

use futures_util::future::join_all;
use tempmail_tests::app::Mailbox;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, SmtpClient, WebSocket};

use super::{assert_nothing_unread, subjects, watch};

/// A mail whose `new_email` has about 6 KiB.
fn large(n: usize) -> Vec<u8> {
    let text = "𝄞".repeat(995);
    format!("From: {} <a@client.example>\r\nSubject: {n:04} {text}\r\n\r\n{text}\r\n", &text[..4 * 450])
        .into()
}

/// Mails of [`send_large`].
const MAILS: usize = 9;
/// Recipients of each of them.
const RECIPIENTS: usize = 100;
/// Messages that [`send_large`] sends: more than all buffers between server and client can hold.
const MESSAGES: usize = MAILS * RECIPIENTS;

/// Sends large mails, each to tags of a mailbox.
pub(super) async fn send_large(app: &App, mailbox: &Mailbox) {
    let (local, domain) = mailbox.address.split_once('@').unwrap();
    let recipients: Vec<String> = (0..RECIPIENTS).map(|n| format!("{local}+{n}@{domain}")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for n in 0..MAILS {
        let reply = client.transact("a@client.example", &recipients, &large(n)).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

/// A socket with a small receive buffer.
pub(super) async fn watch_slowly(app: &App, mailbox: &Mailbox) -> WebSocket {
    let mut socket = WebSocket::to(app.http()).receive_buffer(4096).connect().await;
    socket.auth(&mailbox.jwt).await;
    assert_eq!(socket.next_json().await["type"], "auth_ok");
    socket
}

/// Asserts that the mails of [`send_large`] come next, in order, after those that were `received`.
async fn receives_large(socket: &mut WebSocket, mut received: Vec<String>) {
    received.extend(subjects(socket, MESSAGES - received.len()).await);
    let numbers: Vec<usize> = received.iter().map(|subject| subject[..4].parse().unwrap()).collect();
    let expected: Vec<usize> = (0..MESSAGES).map(|n| n / RECIPIENTS).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_a_late_reader_everything_in_order() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "late@inbox.localhost").await;
    let mut socket = watch_slowly(&app, &mailbox).await;
    send_large(&app, &mailbox).await;
    receives_large(&mut socket, Vec::new()).await;
    assert_nothing_unread(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_a_late_reader_everything_after_the_ring_has_wrapped() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "later@inbox.localhost").await;
    let mut socket = watch_slowly(&app, &mailbox).await;
    send_large(&app, &mailbox).await;
    // More arrivals than the ring of the process holds. A socket of which nothing is read for 30 s would be closed.
    let others: Vec<String> = (0..100).map(|n| format!("other-{n}@inbox.localhost")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let mut received = Vec::new();
    for _ in 0..18 {
        join_all((0..5).map(|_| async {
            let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
            assert_eq!(client.transact("a@client.example", &others, b"Subject: x\r\n\r\n").await.code, 250);
        }))
        .await;
        received.extend(subjects(&mut socket, 1).await);
    }
    receives_large(&mut socket, received).await;
    assert_nothing_unread(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_unsent_messages_of_a_slow_client_on_revocation() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "stuck@inbox.localhost").await;
    let (mut stuck, mut quick) = (watch_slowly(&app, &mailbox).await, watch(&app, &mailbox).await);
    tokio::join!(send_large(&app, &mailbox), subjects(&mut quick, MESSAGES));
    app.delete_mailbox(&mailbox).await;
    quick.assert_refused("invalid_token").await;
    let mut read = 0;
    loop {
        match stuck.next_frame().await {
            Frame::Text(text) if text == r#"{"error":"invalid_token"}"# => {
                assert_eq!(stuck.closed().await, 1008);
                break;
            }
            Frame::Text(_) => read += 1,
            // A client that still reads nothing gets no error.
            Frame::End => break,
            Frame::Ping | Frame::Pong => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(read < MESSAGES, "everything was sent");
}
