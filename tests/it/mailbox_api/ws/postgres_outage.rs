//! Sockets during an outage of Postgres.

use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::rows;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, WebSocket, send_mail, smtp};

use super::{pushed, try_watch, watch};

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
