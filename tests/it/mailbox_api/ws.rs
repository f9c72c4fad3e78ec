//! `GET /api/ws`

mod frames;
mod handshake;
mod interruption;
mod limits;
mod push;
mod revocation;
mod slow_client;

use serde_json::Value;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, WebSocket};

/// An authenticated socket of a mailbox.
async fn watch(app: &App, mailbox: &Mailbox) -> WebSocket {
    WebSocket::authenticated(app.http(), &mailbox.jwt).await
}

/// As [`watch`]; `None` if the mailbox has no free slot.
async fn try_watch(app: &App, mailbox: &Mailbox) -> Option<WebSocket> {
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth(&mailbox.jwt).await;
    (socket.next_json().await["type"] == "auth_ok").then_some(socket)
}

/// The next mail that is pushed.
async fn pushed(socket: &mut WebSocket) -> Value {
    let message = socket.next_json().await;
    assert_eq!(message["type"], "new_email", "{message}");
    message
}

/// The subjects of the next mails that are pushed.
async fn subjects(socket: &mut WebSocket, count: usize) -> Vec<String> {
    let mut subjects = Vec::with_capacity(count);
    for _ in 0..count {
        subjects.push(pushed(socket).await["subject"].as_str().unwrap().to_owned());
    }
    subjects
}

/// Asserts that no push is unread: a mail that is sent now comes next.
async fn assert_nothing_unread(app: &App, mailbox: &Mailbox, socket: &mut WebSocket) {
    app.deliver(&mailbox.address, "the next one", "").await;
    assert_eq!(subjects(socket, 1).await, ["the next one"]);
}
