//! Sockets of a process that shuts down, or that has no Postgres.

use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, WebSocket, rows, send_mail, smtp};

use super::{pushed, try_watch, watch};

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

async fn behind_proxy() -> (App, PostgresProxy) {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    (app, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_sockets_open_and_pushes_mail_after_the_outage() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "patient@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    for turn in ["first", "second"] {
        proxy.cut();
        let refused = send_mail(app.smtp(), "a@client.example", &mailbox.address, b"x").await;
        assert_eq!(refused.status(), "451 4.3.0");
        proxy.restore();
        eventually("mail is accepted again", || async {
            let mail = smtp::message("a@client.example", turn, "");
            let reply = send_mail(app.smtp(), "a@client.example", &mailbox.address, &mail).await;
            (reply.code == 250).then_some(())
        })
        .await;
        assert_eq!(pushed(&mut socket).await["subject"], turn);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_a_new_socket_with_1013_during_the_outage() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "again@inbox.localhost").await;
    proxy.cut();
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth(&mailbox.jwt).await;
    assert_eq!(socket.next_json().await["error"], "unavailable");
    assert_eq!(socket.closed().await, 1013);
    // An invalid token is rejected without Postgres.
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth("nonsense").await;
    socket.assert_refused("invalid_token").await;
    proxy.restore();
    eventually("a new socket is accepted", || try_watch(&app, &mailbox)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_a_revocation_made_during_the_outage() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "meanwhile@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    proxy.cut();
    // In the database, where the roles do not see it.
    rows::advance_password_epoch(&app.pool, mailbox.id).await;
    proxy.restore();
    socket.assert_refused("invalid_token").await;
}
