//! While Postgres is away sockets stay, and miss nothing.

use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, WebSocket, send_mail, smtp};

use super::{pushed, watch};

async fn behind_proxy() -> (App, PostgresProxy) {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    (app, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_outlives_it_and_gets_what_comes_after() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "patient@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    for turn in ["first", "second"] {
        proxy.cut();
        let refused = send_mail(app.smtp(), "a@client.example", &mailbox.address, b"x").await;
        assert_eq!(refused.status(), "451 4.3.0");
        proxy.restore();
        eventually("mail is taken again", || async {
            let mail = smtp::message("a@client.example", turn, "");
            let reply = send_mail(app.smtp(), "a@client.example", &mailbox.address, &mail).await;
            (reply.code == 250).then_some(())
        })
        .await;
        assert_eq!(pushed(&mut socket).await["subject"], turn);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_then_is_told_to_try_again() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "again@inbox.localhost").await;
    proxy.cut();
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth(&mailbox.jwt).await;
    assert_eq!(socket.next_json().await["error"], "unavailable");
    assert_eq!(socket.closed().await, 1013);
    // What needs no Postgres is told all the same.
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth("nonsense").await;
    socket.is_refused("invalid_token").await;
    proxy.restore();
    eventually("it is let in", || async {
        let mut socket = WebSocket::to(app.http()).connect().await;
        socket.auth(&mailbox.jwt).await;
        (socket.next_json().await["type"] == "auth_ok").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_ended_meanwhile_has_ended_after_it() {
    let (app, proxy) = behind_proxy().await;
    let mailbox = app.mailbox(None, "meanwhile@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    proxy.cut();
    // Past the processes, which see nothing of it.
    sqlx::query("UPDATE mailbox SET password_epoch = password_epoch + 1 WHERE id = $1")
        .bind(mailbox.id)
        .execute(&app.pool)
        .await
        .unwrap();
    proxy.restore();
    socket.is_refused("invalid_token").await;
}
