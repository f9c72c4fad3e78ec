//! Clients that are slow to read.

use reqwest::Method;
use tempmail_tests::app::Mailbox;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, SmtpClient, WebSocket};

use super::{has_nothing_more, subjects, watch};

/// A mail whose `new_email` has some 6 KiB.
fn large(n: usize) -> Vec<u8> {
    let text = "𝄞".repeat(995);
    format!("From: {} <a@client.example>\r\nSubject: {n:04} {text}\r\n\r\n{text}\r\n", &text[..4 * 450])
        .into()
}

/// Sends so many large mails.
pub(super) async fn send_large(app: &App, mailbox: &Mailbox, count: usize) {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for n in 0..count {
        let reply = client.transact("a@client.example", &[&mailbox.address], &large(n)).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

/// A socket that takes little before it is read.
pub(super) async fn watch_slowly(app: &App, mailbox: &Mailbox) -> WebSocket {
    let mut socket = WebSocket::to(app.http()).receive_buffer(4096).connect().await;
    socket.auth(&mailbox.jwt).await;
    assert_eq!(socket.next_json().await["type"], "auth_ok");
    socket
}

/// Asserts that so many large mails come next, in their order.
async fn gets_large(socket: &mut WebSocket, count: usize) {
    let numbers: Vec<String> =
        subjects(socket, count).await.iter().map(|subject| subject[..4].to_owned()).collect();
    let expected: Vec<String> = (0..count).map(|n| format!("{n:04}")).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_late_gets_everything_in_order() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "late@inbox.localhost").await;
    let mut socket = watch_slowly(&app, &mailbox).await;
    // More than all buffers on the way have room for.
    send_large(&app, &mailbox, 900).await;
    gets_large(&mut socket, 900).await;
    has_nothing_more(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_that_much_other_mail_went_by_meanwhile() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "later@inbox.localhost").await;
    let mut socket = watch_slowly(&app, &mailbox).await;
    send_large(&app, &mailbox, 900).await;
    // More than a process keeps in memory of what arrived, for everybody together.
    let others: Vec<String> = (0..100).map(|n| format!("other-{n}@inbox.localhost")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for _ in 0..90 {
        assert_eq!(client.transact("a@client.example", &others, b"Subject: x\r\n\r\n").await.code, 250);
    }
    gets_large(&mut socket, 900).await;
    has_nothing_more(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_slow_client_has_not_been_sent_it_never_gets_once_its_right_ends() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "stuck@inbox.localhost").await;
    let (mut stuck, mut quick) = (watch_slowly(&app, &mailbox).await, watch(&app, &mailbox).await);
    let count = 900;
    tokio::join!(send_large(&app, &mailbox, count), subjects(&mut quick, count));
    app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.expect(204);
    quick.is_refused("invalid_token").await;
    let mut read = 0;
    loop {
        match stuck.next_frame().await {
            Frame::Text(text) if text == r#"{"error":"invalid_token"}"# => {
                assert_eq!(stuck.closed().await, 1008);
                break;
            }
            Frame::Text(_) => read += 1,
            // A client that goes on reading nothing is not told.
            Frame::End => break,
            Frame::Ping | Frame::Pong => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(read < count, "all of {count} were sent");
}
