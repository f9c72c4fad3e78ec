//! A mailbox may have three sockets.

use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{App, WebSocket};

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
