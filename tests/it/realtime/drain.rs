//! SIGTERM while mail flows: every client is asked to reconnect, no mail is lost, and the process exits with success.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::load::senders::Senders;
use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{EventStream, Response, SmtpClient, WebSocket, smtp};
use tokio::task::JoinHandle;

use super::fixture::RealtimeFixture;

/// No mail is sent there.
const QUIET: &str = "quiet@inbox.localhost";
/// Clients of each kind; a multiple of 30.
const CLIENTS: usize = 30;
/// Mails before and after the signal.
const MAILS: usize = 50;

/// Clients of one API process that wait for mail.
struct IdleClients {
    /// Mail waits, too.
    long_polls: Vec<JoinHandle<Response>>,
    streams: Vec<EventStream>,
    sockets: Vec<WebSocket>,
}

impl IdleClients {
    /// Connects them; returns once all wait.
    async fn connect(fixture: &RealtimeFixture, api: usize) -> Self {
        let fleet = &fixture.fleet;
        let followers = fixture.subscribers.iter().filter(|subscriber| subscriber.api == api).count();
        // A follower's first request, which it has ended, may still count, and its next one not yet.
        eventually("all followers wait", || async {
            (fleet.api(api).metric("tempmail_subscribers").await == followers as f64).then_some(())
        })
        .await;
        let (mut long_polls, mut streams, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        for nth in 0..CLIENTS / 3 {
            let mailbox = fleet.mailbox(None, &format!("quiet-{nth}@inbox.localhost")).await;
            for _ in 0..3 {
                sockets.push(WebSocket::authenticated(fleet.http(api), &mailbox.jwt).await);
            }
        }
        for nth in 0..CLIENTS / 10 {
            // A tenant may wait ten times for an address.
            let tenant = fleet.another_tenant(&format!("quay-{nth}")).await;
            for _ in 0..10 {
                let token = fleet.token(&tenant, TokenKind::Live).await;
                let path = format!("/v1/sse/addr?address={QUIET}&token={token}");
                streams.push(EventStream::open(fleet.request(api, Method::GET, &path)).await);
            }
        }
        // Last, since a long-poll ends by itself after 25 s.
        for nth in 0..CLIENTS / 10 {
            let tenant = fleet.another_tenant(&format!("pier-{nth}")).await;
            for _ in 0..10 {
                let token = fleet.token(&tenant, TokenKind::Live).await;
                let request = match nth % 2 {
                    0 => fleet.request(api, Method::GET, &format!("/v1/inbox/{QUIET}")),
                    _ => fleet.request(api, Method::POST, "/v1/wait").json(&json!({ "address": QUIET })),
                };
                long_polls.push(tokio::spawn(request.live(&token).send()));
            }
        }
        eventually("all clients wait", || async {
            let waiters = fleet.api(api).metric("tempmail_subscribers").await;
            (waiters >= (followers + 3 * CLIENTS) as f64).then_some(())
        })
        .await;
        Self { long_polls, streams, sockets }
    }

    /// Asserts that each is disconnected cleanly, in the way of its protocol.
    async fn assert_disconnected(self) {
        let long_polls = join_all(self.long_polls.into_iter().map(|long_poll| async {
            let answer = long_poll.await.unwrap();
            assert_eq!(answer.status, 204);
            assert!(!answer.header("x-next-since").is_empty());
        }));
        let streams = join_all(self.streams.into_iter().map(|stream| async {
            assert!(stream.ended().await.is_complete, "a stream broke");
        }));
        let sockets = join_all(self.sockets.into_iter().map(|mut socket| async move {
            assert_eq!(socket.closed().await, 1001);
            assert_eq!(socket.next_frame().await, Frame::End);
        }));
        tokio::join!(long_polls, streams, sockets);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_api_disconnects_its_clients_without_losing_mail() {
    let fixture = RealtimeFixture::start().await;
    let clients = IdleClients::connect(&fixture, 0).await;
    let senders = Senders::start(&fixture.load());
    senders.wait_for_accepted(MAILS).await;
    let (ended, ()) = tokio::join!(fixture.fleet.api(0).terminate(), clients.assert_disconnected());
    assert!(ended.status.success(), "{ended:?}");
    fixture.move_subscribers(0, 1);
    senders.wait_for_accepted(MAILS).await;
    let accepted = senders.stop().await;
    fixture.assert_delivered(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_ingest_finishes_mail_in_data_and_sends_421_to_idle_sessions() {
    let fixture = RealtimeFixture::start().await;
    let senders = Senders::start(&fixture.load());
    senders.wait_for_accepted(MAILS).await;
    let server = fixture.fleet.smtp(1);
    let mut idle: Vec<SmtpClient> = join_all((0..50).map(|_| SmtpClient::connect_with_ehlo(server))).await;
    let mut in_data = Vec::new();
    for _ in 0..20 {
        let mut client = SmtpClient::connect_with_ehlo(server).await;
        client.expect_positive("MAIL FROM:<ada@client.example>").await;
        client.expect_positive(&format!("RCPT TO:<{QUIET}>")).await;
        client.expect_positive("DATA").await;
        in_data.push(client);
    }
    let sessions = async {
        join_all(idle.iter_mut().map(|client| async {
            assert_eq!(client.reply().await.code, 421);
        }))
        .await;
        // The process drains by now, and still accepts mail in DATA.
        let message = smtp::dot_stuffed(&smtp::message("Ada <ada@client.example>", "in flight", ""));
        for client in &mut in_data {
            client.send(&message).await;
            assert_eq!(client.reply().await.code, 250);
        }
    };
    let (ended, ()) = tokio::join!(fixture.fleet.ingest(1).terminate(), sessions);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(fixture.fleet.stored_message_ids(QUIET).await.len(), 20);
    senders.wait_for_accepted(MAILS).await;
    let accepted = senders.stop().await;
    fixture.assert_delivered(&accepted).await;
}
