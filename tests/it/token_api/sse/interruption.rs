//! Streams with a slow client, a draining server, or without Postgres.

use std::ops::Range;
use std::time::Duration;

use jiff::SignedDuration;
use nix::sys::signal::Signal;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::{self, Request};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, SmtpClient, rows};

use super::{ADDR, ADDRESS, USER, assert_nothing_unread, open_and_read_cursor, request, subject};

/// Longest time for which a client may read nothing.
const STALLED: Duration = Duration::from_secs(30);

/// Recipients of a mail, and mails: together more than all buffers between server and client can hold.
const RECIPIENTS: usize = 100;
const MAILS: usize = 30;
/// Mails that are sent while the client of a stream does not read.
const PAUSE: usize = 10;

/// Sends mails to tags of an address.
async fn flood(app: &App, address: &str) {
    send_numbered(app, address, 0..MAILS).await;
}

/// Sends mails with these numbers, and a subject of 4 KB, to tags of an address.
async fn send_numbered(app: &App, address: &str, numbers: Range<usize>) {
    let (local, domain) = address.split_once('@').unwrap();
    let recipients: Vec<String> =
        (0..RECIPIENTS).map(|number| format!("{local}+{number}@{domain}")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for number in numbers {
        let message = format!("From: a@client.example\r\nSubject: {number} {}\r\n\r\n", "🦀".repeat(900));
        let reply = client.transact("a@client.example", &recipients, message.as_bytes()).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

/// The number and the address of the next mail of a stream.
async fn next_mail(stream: &mut EventStream) -> (usize, String) {
    let event = stream.next().await;
    let email: serde_json::Value = serde_json::from_str(&event.data).unwrap();
    let number = subject(&event).split_once(' ').unwrap().0.parse().unwrap();
    (number, email["address"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_a_paused_client_everything_once() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    for path in [ADDR, USER] {
        let mut stream = open_and_read_cursor(&app, path).await;
        // The client reads so little meanwhile that it is not disconnected.
        let mut met = Vec::new();
        for number in (0..MAILS).step_by(PAUSE) {
            send_numbered(&app, ADDRESS, number..number + PAUSE).await;
            met.push(next_mail(&mut stream).await);
        }
        while met.len() < MAILS * RECIPIENTS {
            met.push(next_mail(&mut stream).await);
        }
        let mut distinct = met.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), MAILS * RECIPIENTS, "{path}");
        assert!(met.is_sorted_by_key(|(number, _)| *number), "{path}: in the order of arrival");
        assert_nothing_unread(&app, &mut stream, ADDRESS).await;
    }
}

#[tokio::test]
async fn disconnects_a_client_that_reads_nothing_for_30_s() {
    let app = App::builder().config(|config| config.http.streams = 1).start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let mut stalled = RawConnection::connect(app.http(), Some(4096)).await.unwrap();
    let token = [("x-api-token".to_owned(), app.tenant.live.clone())];
    assert_eq!(stalled.get(ADDR, &token).await.unwrap().status, 200);
    super::refused(&app, USER).await.assert_v1_error(503, "sse_unavailable");
    flood(&app, ADDRESS).await;
    app.jump_until("its slot is free", STALLED, || async {
        EventStream::try_open(request(&app, &app.tenant.live, USER)).await.unwrap().ok().map(drop)
    })
    .await;
    let sent = stalled.read_to_end().await;
    assert!(!sent.ends_with(b"0\r\n\r\n"), "it was disconnected, not completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn stays_open_while_postgres_is_down() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    let expire_in =
        |hours| rows::expire_token(&app.pool, &token, app.clock.now() + SignedDuration::from_hours(hours));
    expire_in(1).await;
    let mut stream = EventStream::open(request(&app, &token, ADDR)).await;
    stream.block().await;
    let is_unavailable = || {
        eventually("Postgres is unavailable", || async {
            let answer = app.get("/v1/tokens").await;
            (answer.status == 503).then_some(())
        })
    };
    proxy.cut();
    // A check that began before is over: at the later time it would find the token expired.
    is_unavailable().await;
    // The token has to be checked again, which needs Postgres.
    app.advance_hours(2);
    is_unavailable().await;
    expire_in(7).await;
    proxy.restore();
    eventually("mail is accepted again", || async {
        let message = tempmail_tests::smtp::message("a@client.example", "after the absence", "");
        let reply = tempmail_tests::send_mail(app.smtp(), "a@client.example", ADDRESS, &message).await;
        (reply.code == 250).then_some(())
    })
    .await;
    assert_eq!(subject(&stream.next().await), "after the absence");
    app.advance_hours(8);
    assert!(stream.ended().await.is_complete, "it ends at the new expiry");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_on_drain_and_resume_after_the_restart() {
    let installation = UpInstallation::new();
    let mut server = installation.up(&[]);
    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let client = http::client();
    let stream = |path: &str| {
        Request::new(&client, Method::GET, &format!("http://{}{path}", installation.http)).live(&token)
    };
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut stream = EventStream::open(stream(ADDR)).await;
        stream.block().await;
        streams.push(stream);
    }
    let cursor = streams[0].last_event_id().to_owned();
    server.signal(Signal::SIGTERM);
    for stream in streams {
        let end = stream.ended().await;
        assert!(end.is_complete && end.events.is_empty(), "{end:?}");
    }
    assert!(server.wait().success(), "{}", server.output());

    let _server = installation.up(&[]);
    let message = tempmail_tests::smtp::message("a@client.example", "after the restart", "");
    let reply = tempmail_tests::send_mail(installation.smtp, "a@client.example", ADDRESS, &message).await;
    assert_eq!(reply.code, 250);
    let mut resumed = EventStream::open(stream(ADDR).header("last-event-id", &cursor)).await;
    assert_eq!(subject(&resumed.next().await), "after the restart");
}
