//! A process is told to stop (SIGTERM) while mail flows: every client is told to go elsewhere, none
//! loses a mail, and the process ends in time.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::fleet::Termination;
use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{Answer, EventStream, SmtpClient, WebSocket, smtp};
use tokio::task::JoinHandle;

use super::senders::Senders;
use super::stage::Stage;

/// Nobody sends mail there.
const QUIET: &str = "quiet@inbox.localhost";
/// Clients of each kind.
const CLIENTS: usize = 60;
/// Longest that a process may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(25);

/// Clients of one process, which wait for mail that never comes.
struct Crowd {
    waits: Vec<JoinHandle<Answer>>,
    streams: Vec<EventStream>,
    sockets: Vec<WebSocket>,
}

impl Crowd {
    /// All of them, when each has its place.
    async fn gather(stage: &Stage, api: usize) -> Self {
        let fleet = &stage.fleet;
        let before = fleet.api(api).metric("tempmail_subscribers").await;
        let (mut waits, mut streams, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        for nth in 0..CLIENTS / 3 {
            let mailbox = fleet.mailbox(None, &format!("quiet-{nth}@inbox.localhost")).await;
            for _ in 0..3 {
                sockets.push(WebSocket::authenticated(fleet.http(api), &mailbox.jwt).await);
            }
        }
        for nth in 0..CLIENTS / 10 {
            // Each of them may wait ten times for an address.
            let tenant = fleet.another_tenant(&format!("quay-{nth}")).await;
            for _ in 0..10 {
                let token = fleet.token(&tenant, TokenKind::Live).await;
                let path = format!("/v1/sse/addr?address={QUIET}&token={token}");
                streams.push(EventStream::open(fleet.request(api, Method::GET, &path)).await);
                let request = fleet.request(api, Method::GET, &format!("/v1/inbox/{QUIET}")).live(&token);
                waits.push(tokio::spawn(request.send()));
            }
        }
        let crowd = Self { waits, streams, sockets };
        eventually("all clients have their places", || async {
            let waiters = fleet.api(api).metric("tempmail_subscribers").await;
            (waiters >= before + (3 * CLIENTS) as f64).then_some(())
        })
        .await;
        crowd
    }

    /// Asserts that each is told to come back, in its own way.
    async fn hears_of_it(self) {
        let waits = join_all(self.waits.into_iter().map(|waiting| async {
            // The answer is whole: the connection did not break.
            assert_eq!(waiting.await.unwrap().status, 204);
        }));
        let streams = join_all(self.streams.into_iter().map(|stream| async {
            assert!(stream.ended().await.is_whole, "a stream broke");
        }));
        let sockets = join_all(self.sockets.into_iter().map(|mut socket| async move {
            assert_eq!(socket.closed().await, 1001);
            assert_eq!(socket.next_frame().await, Frame::End);
        }));
        tokio::join!(waits, streams, sockets);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_http_interface_are_sent_away_and_lose_nothing() {
    let stage = Stage::set().await;
    let crowd = Crowd::gather(&stage, 0).await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(100).await;
    let (ended, ()) = tokio::join!(stage.fleet.api(0).terminate(), crowd.hears_of_it());
    is_well(&ended);
    stage.move_listeners(0, 1);
    senders.go_on_for(100).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_finish_their_mail_or_are_told_421() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(100).await;
    let server = stage.fleet.smtp(1);
    let mut idle: Vec<SmtpClient> = join_all((0..50).map(|_| SmtpClient::connect_with_ehlo(server))).await;
    let mut in_data = Vec::new();
    for _ in 0..20 {
        let mut client = SmtpClient::connect_with_ehlo(server).await;
        client.expect_positive("MAIL FROM:<ada@client.example>").await;
        client.expect_positive(&format!("RCPT TO:<{QUIET}>")).await;
        client.expect_positive("DATA").await;
        in_data.push(client);
    }
    let told = async {
        join_all(idle.iter_mut().map(|client| async {
            assert_eq!(client.reply().await.code, 421);
        }))
        .await;
        // By now it drains; what is in hand is still taken.
        let message = smtp::dot_stuffed(&smtp::message("Ada <ada@client.example>", "in hand", ""));
        for client in &mut in_data {
            client.send(&message).await;
            assert_eq!(client.reply().await.code, 250);
        }
    };
    let (ended, ()) = tokio::join!(stage.fleet.ingest(1).terminate(), told);
    is_well(&ended);
    assert_eq!(stage.fleet.stored_message_ids(QUIET).await.len(), 20);
    senders.go_on_for(100).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

fn is_well(ended: &Termination) {
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.took <= ENDS_WITHIN, "{ended:?}");
}
