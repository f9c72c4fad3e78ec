//! `GET /api/ws`

mod authentication;
mod connections;
mod drain;
mod frames;
mod postgres_away;
mod push;
mod rights;
mod slow;
mod time;
mod upgrade;

use serde_json::Value;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, WebSocket};

/// A socket that watches a mailbox.
async fn watch(app: &App, mailbox: &Mailbox) -> WebSocket {
    WebSocket::authenticated(app.http(), &mailbox.jwt).await
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

/// Asserts that nothing was pushed that was not read yet: a mail that is sent now comes next.
async fn has_nothing_more(app: &App, mailbox: &Mailbox, socket: &mut WebSocket) {
    app.deliver(&mailbox.address, "the next one", "").await;
    assert_eq!(subjects(socket, 1).await, ["the next one"]);
}
