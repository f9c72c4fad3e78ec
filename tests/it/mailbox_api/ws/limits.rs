//! A mailbox may have three sockets. Timeouts of a socket, for which the tests move tokio's clock instead of waiting.

use std::time::Duration;

use tempmail_tests::app::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, WebSocket};

use super::slow_client::{send_large, watch_slowly};
use super::{subjects, try_watch, watch};

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_fourth_socket_of_a_mailbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "busy@inbox.localhost").await;
    let other = app.mailbox(None, "other@inbox.localhost").await;
    let mut three = [watch(&app, &mailbox).await, watch(&app, &mailbox).await, watch(&app, &mailbox).await];
    for _ in 0..2 {
        let mut fourth = WebSocket::to(app.http()).connect().await;
        fourth.auth(&mailbox.jwt).await;
        fourth.assert_refused("too_many_connections").await;
    }
    watch(&app, &other).await;
    app.deliver(&mailbox.address, "for all three", "").await;
    for socket in &mut three {
        assert_eq!(subjects(socket, 1).await, ["for all three"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_before_the_close_frame_is_sent() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "again@inbox.localhost").await;
    let _two = [watch(&app, &mailbox).await, watch(&app, &mailbox).await];
    let mut third = watch(&app, &mailbox).await;
    for turn in 0..20 {
        if turn % 2 == 0 {
            third.close().await;
            assert!(matches!(third.next_frame().await, Frame::Close(..)));
        } else {
            third.send_text("nothing is due").await;
            assert_eq!(third.next_json().await["error"], "invalid_auth_message");
        }
        third = watch(&app, &mailbox).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_of_a_client_that_disconnects() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "gone@inbox.localhost").await;
    let three = [watch(&app, &mailbox).await, watch(&app, &mailbox).await, watch(&app, &mailbox).await];
    drop(three);
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(eventually("a slot is free", || try_watch(&app, &mailbox)).await);
    }
}

/// Time to authenticate.
const WINDOW: Duration = Duration::from_secs(10);

/// Time between two pings, and longest time for which a client may read nothing.
const PERIOD: Duration = Duration::from_secs(30);

#[tokio::test]
async fn rejects_a_socket_that_does_not_authenticate_within_10_s() {
    let app = App::start().await;
    let mut silent = WebSocket::to(app.http()).connect().await;
    let mut pinging = WebSocket::to(app.http()).connect().await;
    // Little, so that it stays open on a busy machine.
    let early = WINDOW / 10;
    app.jump(early).await;
    pinging.ping().await;
    assert_eq!(pinging.next_frame().await, Frame::Pong, "it stays open, and a ping does not extend the time");
    app.jump(WINDOW - early).await;
    for socket in [&mut silent, &mut pinging] {
        socket.assert_refused("invalid_auth_message").await;
    }
}

#[tokio::test]
async fn pings_every_30_s_and_keeps_a_client_that_answers() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "answering@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    for _ in 0..4 {
        app.jump(PERIOD).await;
        assert_eq!(socket.next_frame().await, Frame::Ping);
        // The answer to this one comes after the server has read the pong.
        socket.ping().await;
        assert_eq!(socket.next_frame().await, Frame::Pong);
    }
    app.deliver(&mailbox.address, "after them", "").await;
    assert_eq!(socket.next_json().await["subject"], "after them");
}

#[tokio::test]
async fn closes_a_client_that_answers_no_ping_and_frees_its_slot() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "muted@inbox.localhost").await;
    let mut sockets = [watch(&app, &mailbox).await, watch(&app, &mailbox).await, watch(&app, &mailbox).await];
    for socket in &mut sockets {
        socket.mute();
    }
    for _ in 0..2 {
        app.jump(PERIOD).await;
        for socket in &mut sockets {
            assert_eq!(socket.next_frame().await, Frame::Ping);
        }
    }
    app.jump(PERIOD).await;
    for socket in &mut sockets {
        let frame = socket.next_frame().await;
        assert!(matches!(frame, Frame::Close(1008, _) | Frame::End), "{frame:?}");
    }
    watch_once_free(&app, &mailbox).await;
}

#[tokio::test]
async fn disconnects_a_client_that_reads_nothing_for_30_s_and_frees_its_slot() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "stalled@inbox.localhost").await;
    let _stalled = [
        watch_slowly(&app, &mailbox).await,
        watch_slowly(&app, &mailbox).await,
        watch_slowly(&app, &mailbox).await,
    ];
    send_large(&app, &mailbox).await;
    watch_once_free(&app, &mailbox).await;
}

/// Connects a socket of a mailbox, at the latest after some periods.
async fn watch_once_free(app: &App, mailbox: &Mailbox) {
    app.jump_until("a slot is free", PERIOD, || try_watch(app, mailbox)).await;
}
