//! Streams whose client, server or Postgres is slow, away or leaving.

use nix::sys::signal::Signal;
use reqwest::Method;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_tests::binary::Installation;
use tempmail_tests::http::{self, Request};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, SmtpClient};

use super::{ADDR, ADDRESS, USER, ask, begun, is_next, subject};

/// Recipients of one mail, and mails, that are more than any buffer between the two ends.
const RECIPIENTS: usize = 100;
const MAILS: usize = 30;

/// Sends mails of 4 KB of subject to as many tags of the address; the last one is told apart.
async fn flood(app: &App, address: &str) {
    let (local, domain) = address.split_once('@').unwrap();
    let recipients: Vec<String> =
        (0..RECIPIENTS).map(|number| format!("{local}+{number}@{domain}")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for number in 0..MAILS {
        let message = format!("From: a@client.example\r\nSubject: {number} {}\r\n\r\n", "🦀".repeat(900));
        let reply = client.transact("a@client.example", &recipients, message.as_bytes()).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_pauses_misses_nothing_and_meets_nothing_twice() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    for path in [ADDR, USER] {
        let mut stream = begun(&app, path).await;
        // Nobody reads meanwhile.
        flood(&app, ADDRESS).await;
        let mut met = Vec::new();
        for _ in 0..MAILS * RECIPIENTS {
            let event = stream.next().await;
            let email: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            let number = subject(&event).split_once(' ').unwrap().0.parse::<usize>().unwrap();
            met.push((number, email["address"].as_str().unwrap().to_owned()));
        }
        let mut distinct = met.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), MAILS * RECIPIENTS, "{path}");
        assert!(met.is_sorted_by_key(|(number, _)| *number), "{path}: in the order of arrival");
        is_next(&app, &mut stream, ADDRESS).await;
    }
}

/// The one test that waits for the 30 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_for_30_s_is_cut() {
    let app = App::builder().config(|config| config.http.streams = 1).start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let mut stalled = RawConnection::dial(app.http(), Some(4096)).await.unwrap();
    let token = [("x-api-token".to_owned(), app.tenant.live.clone())];
    assert_eq!(stalled.get(ADDR, &token).await.unwrap().status, 200);
    super::refused(&app, USER).await.is_v1_error(503, "sse_unavailable");
    flood(&app, ADDRESS).await;
    eventually("its place is free", || async {
        EventStream::try_open(ask(&app, &app.tenant.live, USER)).await.unwrap().ok().map(drop)
    })
    .await;
    let sent = stalled.rest().await;
    assert!(!sent.ends_with(b"0\r\n\r\n"), "it was cut, not ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_stays_open_while_postgres_is_away() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    let hash = TokenHash::from_presented(TokenKind::Live, &token).unwrap();
    let expire =
        |statement: &'static str| sqlx::query(statement).bind(hash.as_bytes().as_slice()).execute(&app.pool);
    expire("UPDATE api_token SET expires_at = created_at + interval '1 hour' WHERE hash = $1").await.unwrap();
    let mut stream = EventStream::open(ask(&app, &token, ADDR)).await;
    stream.block().await;
    proxy.cut();
    // It has to be asked whether the token may still act, and there is nobody to ask.
    app.advance_hours(2);
    eventually("Postgres is missed", || async {
        let answer = app.get("/v1/tokens").await;
        (answer.status == 503).then_some(())
    })
    .await;
    expire("UPDATE api_token SET expires_at = created_at + interval '9 hours' WHERE hash = $1")
        .await
        .unwrap();
    proxy.restore();
    eventually("mail is taken again", || async {
        let message = tempmail_tests::smtp::message("a@client.example", "after the absence", "");
        let reply = tempmail_tests::send_mail(app.smtp(), "a@client.example", ADDRESS, &message).await;
        (reply.code == 250).then_some(())
    })
    .await;
    assert_eq!(subject(&stream.next().await), "after the absence");
    app.advance_hours(8);
    assert!(stream.ended().await.is_whole, "it expires when it does");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_process_ends_its_streams_and_they_resume_after_it() {
    let installation = Installation::new();
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
        assert!(end.is_whole && end.events.is_empty(), "{end:?}");
    }
    assert!(server.wait().success(), "{}", server.output());

    let _server = installation.up(&[]);
    let message = tempmail_tests::smtp::message("a@client.example", "after the restart", "");
    let reply = tempmail_tests::send_mail(installation.smtp, "a@client.example", ADDRESS, &message).await;
    assert_eq!(reply.code, 250);
    let mut resumed = EventStream::open(stream(ADDR).header("last-event-id", &cursor)).await;
    assert_eq!(subject(&resumed.next().await), "after the restart");
}
