//! The times that the interface fixes. They are waited for once, all of them at once.

use std::time::Duration;

use tempmail_tests::app::Mailbox;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, WebSocket};
use tokio::time::{Instant, sleep_until};

use super::slow::{send_large, watch_slowly};
use super::watch;

/// Awaits what is to have happened so many seconds after `start`.
async fn within<T>(start: Instant, seconds: u64, what: &str, future: impl Future<Output = T>) -> T {
    tokio::select! {
        value = future => value,
        () = sleep_until(start + Duration::from_secs(seconds)) => panic!("not within {seconds} s: {what}"),
    }
}

/// 10 s for the first message, however many pings come in between.
async fn the_window_to_authenticate(app: &App) {
    let start = Instant::now();
    let (mut silent, mut pinging) =
        (WebSocket::to(app.http()).connect().await, WebSocket::to(app.http()).connect().await);
    let silent = within(start, 15, "it is refused", silent.is_refused("invalid_auth_message"));
    let pinging = within(start, 15, "it is refused", async {
        loop {
            pinging.ping().await;
            match pinging.next_frame().await {
                Frame::Pong => tokio::time::sleep(Duration::from_millis(200)).await,
                frame => break assert_eq!(frame, Frame::Text(r#"{"error":"invalid_auth_message"}"#.into())),
            }
        }
    });
    tokio::join!(silent, pinging);
    assert!(start.elapsed() >= Duration::from_secs(9), "it is left its 10 s");
}

/// A ping every 30 s. Who answers goes on.
async fn pings(app: &App, mailbox: &Mailbox) {
    let mut socket = watch(app, mailbox).await;
    let start = Instant::now();
    for n in 1..=3 {
        assert_eq!(within(start, 30 * n + 5, "a ping", socket.next_frame()).await, Frame::Ping);
    }
    sleep_until(start + Duration::from_secs(100)).await;
    app.deliver(&mailbox.address, "after them", "").await;
    assert_eq!(socket.next_json().await["subject"], "after them");
}

/// Who answers no ping is closed when two were sent, and its place is free.
async fn no_pongs(app: &App, mailbox: &Mailbox) {
    let mut three = [watch(app, mailbox).await, watch(app, mailbox).await, watch(app, mailbox).await];
    let start = Instant::now();
    for socket in &mut three {
        socket.mute();
    }
    let [mute, ..] = &mut three;
    for n in 1..=2 {
        assert_eq!(within(start, 30 * n + 5, "a ping", mute.next_frame()).await, Frame::Ping);
    }
    let frame = within(start, 95, "it is closed", mute.next_frame()).await;
    assert!(matches!(frame, Frame::Close(1008, _) | Frame::End), "{frame:?}");
    within(start, 100, "the places are free", place(app, mailbox)).await;
}

/// Who reads nothing for 30 s is cut.
async fn nothing_read(app: &App, mailbox: &Mailbox) {
    let _three = [
        watch_slowly(app, mailbox).await,
        watch_slowly(app, mailbox).await,
        watch_slowly(app, mailbox).await,
    ];
    send_large(app, mailbox, 700).await;
    within(Instant::now(), 60, "the places are free", place(app, mailbox)).await;
}

/// A socket of a mailbox, as soon as there is a place.
async fn place(app: &App, mailbox: &Mailbox) {
    loop {
        let mut socket = WebSocket::to(app.http()).connect().await;
        socket.auth(&mailbox.jwt).await;
        if socket.next_json().await["type"] == "auth_ok" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_time_is_kept() {
    let app = App::start().await;
    let mut mailboxes = Vec::new();
    for name in ["pings", "mute", "stuck"] {
        mailboxes.push(app.mailbox(None, &format!("{name}@inbox.localhost")).await);
    }
    tokio::join!(
        the_window_to_authenticate(&app),
        pings(&app, &mailboxes[0]),
        no_pongs(&app, &mailboxes[1]),
        nothing_read(&app, &mailboxes[2]),
    );
}
