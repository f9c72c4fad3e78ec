//! Sockets of a process that shuts down.

use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, WebSocket};

#[tokio::test(flavor = "multi_thread")]
async fn closes_every_socket_with_1001_and_exits() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let mut sockets = Vec::new();
    for n in 0..10 {
        let mailbox = fleet.mailbox(None, &format!("drain-{n}@inbox.localhost")).await;
        for _ in 0..3 {
            sockets.push(WebSocket::authenticated(fleet.http(0), &mailbox.jwt).await);
        }
    }
    // Last, since an unauthenticated socket is closed after 10 s.
    sockets.push(WebSocket::to(fleet.http(0)).connect().await);
    // The last one counts after its client has the response.
    eventually("the server counts every socket", || async {
        (fleet.api(0).metric("tempmail_websockets").await == 31.0).then_some(())
    })
    .await;
    let closes = async {
        for socket in &mut sockets {
            assert_eq!(socket.closed().await, 1001);
        }
    };
    let (terminated, ()) = tokio::join!(fleet.api(0).terminate(), closes);
    assert!(terminated.status.success(), "{terminated:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_although_a_client_does_not_read() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let mailbox = fleet.mailbox(None, "idle@inbox.localhost").await;
    let _unread = WebSocket::authenticated(fleet.http(0), &mailbox.jwt).await;
    let terminated = fleet.api(0).terminate().await;
    assert!(terminated.status.success(), "{terminated:?}");
}
