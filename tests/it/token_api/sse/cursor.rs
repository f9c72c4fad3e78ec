//! Cursors: where a stream begins, and that a resumed one has no gap and no duplicate.

use std::time::Duration;

use serde_json::Value;
use tempmail_tests::{App, EventStream, SmtpClient, smtp};

use super::{
    ADDR, ADDRESS, USER, assert_nothing_unread, open, open_and_read_cursor, refused, request, subjects,
};

/// Time between two pings.
const PING: Duration = Duration::from_secs(15);

/// Resumes a stream as EventSource does.
async fn resumed(app: &App, path: &str, last_event_id: &str) -> EventStream {
    let request = request(app, &app.tenant.live, path).header("last-event-id", last_event_id);
    EventStream::open(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn resumes_a_stream_that_broke_before_its_first_mail() {
    let app = App::start().await;
    let stream = open_and_read_cursor(&app, ADDR).await;
    let cursor = stream.last_event_id().to_owned();
    drop(stream);
    app.deliver(ADDRESS, "while disconnected", "").await;
    for mut stream in
        [resumed(&app, ADDR, &cursor).await, open(&app, &format!("{ADDR}&since={cursor}")).await]
    {
        assert_eq!(stream.block().await.id.as_deref(), Some(cursor_of(&stream)));
        assert_eq!(subjects(&mut stream, 1).await, ["while disconnected"]);
    }
}

/// The cursor of the first block of a stream.
fn cursor_of(stream: &EventStream) -> &str {
    assert!(!stream.last_event_id().is_empty());
    stream.last_event_id()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_id_is_the_cursor_after_it() {
    let app = App::start().await;
    let mut stream = open_and_read_cursor(&app, ADDR).await;
    let mut cursors = vec![stream.last_event_id().to_owned()];
    for number in 0..5 {
        app.deliver(ADDRESS, &format!("{number}"), "").await;
        cursors.push(stream.next().await.id);
    }
    for (met, cursor) in cursors[..5].iter().enumerate() {
        let expected: Vec<String> = (met..5).map(|number| number.to_string()).collect();
        let mut stream = resumed(&app, ADDR, cursor).await;
        assert_eq!(subjects(&mut stream, expected.len()).await, expected);
    }
    let mut stream = resumed(&app, ADDR, &cursors[5]).await;
    assert_nothing_unread(&app, &mut stream, ADDRESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resumes_across_hundreds_of_mails_in_order_without_duplicates() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    for path in [ADDR, USER] {
        let mut stream = open_and_read_cursor(&app, path).await;
        let cursor = stream.last_event_id().to_owned();
        let sent = send_hundreds(&app).await;
        assert_eq!(subjects(&mut stream, sent.len()).await, sent, "{path}, without a reconnect");
        let mut stream = resumed(&app, path, &cursor).await;
        app.deliver(ADDRESS, "after", "").await;
        let mut expected = sent;
        expected.push("after".to_owned());
        assert_eq!(subjects(&mut stream, expected.len()).await, expected, "{path}");
    }
}

/// Sends 250 mails, 50 of them to another address; the subjects of the 200.
async fn send_hundreds(app: &App) -> Vec<String> {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let mut sent = Vec::new();
    for number in 0..250 {
        let is_ours = number % 5 != 0;
        let recipient = if is_ours { ADDRESS } else { "other@inbox.localhost" };
        let message = smtp::message("a@client.example", &format!("{number}"), "");
        assert_eq!(client.transact("a@client.example", &[recipient], &message).await.code, 250);
        sent.extend(is_ours.then(|| number.to_string()));
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_cursor_in_every_scope_of_its_tenant() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    app.deliver(ADDRESS, "first", "").await;
    let polled = app.get("/v1/me").await.expect(200)["next_since"].as_str().unwrap().to_owned();
    app.deliver(ADDRESS, "second", "").await;
    for path in [ADDR, "/v1/sse/user?x=1"] {
        let mut stream = open(&app, &format!("{path}&since={polled}")).await;
        let event = stream.next().await;
        let rest = app.get(&format!("/v1/inbox/{ADDRESS}?since={polled}")).await.expect(200);
        let email: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(email, rest["emails"][0]);
        app.deliver("other@inbox.localhost", "elsewhere", "").await;
        let beyond = app.get(&format!("/v1/inbox/other@inbox.localhost?since={}", event.id)).await;
        assert_eq!(beyond.expect(200)["emails"][0]["subject"], "elsewhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_invalid_since_and_ignores_an_invalid_last_event_id() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = EventStream::open(request(&app, &other.live, USER));
    let mut theirs = theirs.await;
    theirs.block().await;
    let foreign = theirs.last_event_id().to_owned();
    for cursor in ["", "nonsense", "%00", &foreign] {
        refused(&app, &format!("{USER}?since={cursor}")).await.assert_v1_error(400, "invalid_request");
        refused(&app, &format!("{ADDR}&since={cursor}")).await.assert_v1_error(400, "invalid_request");
    }
    let ours = open_and_read_cursor(&app, ADDR).await.last_event_id().to_owned();
    let twice = format!("{ADDR}&since={ours}&since={ours}");
    refused(&app, &twice).await.assert_v1_error(400, "invalid_request");

    app.deliver(ADDRESS, "before", "").await;
    for id in ["", "nonsense", &foreign] {
        let mut stream = resumed(&app, ADDR, id).await;
        assert_nothing_unread(&app, &mut stream, ADDRESS).await;
        // An invalid `Last-Event-ID` does not override `since`.
        let mut stream = resumed(&app, &format!("{ADDR}&since={ours}"), id).await;
        assert_eq!(subjects(&mut stream, 1).await, ["before"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resumes_by_the_parameters_of_clients_that_set_no_header_fields() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let mut stream = open_and_read_cursor(&app, ADDR).await;
    let first = stream.last_event_id().to_owned();
    app.deliver(ADDRESS, "met", "").await;
    let second = stream.next().await.id;
    app.deliver(ADDRESS, "while disconnected", "").await;
    for path in [ADDR, "/v1/sse/user?x=1"] {
        for name in ["lastEventId", "lastEventID", "Last-Event-ID"] {
            let mut stream = open(&app, &format!("{path}&{name}={second}&since={first}")).await;
            assert_eq!(subjects(&mut stream, 1).await, ["while disconnected"], "{path} {name}");
        }
    }
    let mut stream = resumed(&app, &format!("{ADDR}&lastEventId={first}"), &second).await;
    assert_eq!(subjects(&mut stream, 1).await, ["while disconnected"], "the header wins");
    let mut stream = open(&app, &format!("{ADDR}&lastEventId=")).await;
    assert_nothing_unread(&app, &mut stream, ADDRESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_invalid_last_event_id_in_a_parameter() {
    let app = App::start().await;
    let ours = open_and_read_cursor(&app, ADDR).await.last_event_id().to_owned();
    for (name, id) in [("lastEventId", "nonsense"), ("lastEventID", "0"), ("Last-Event-ID", "%00")] {
        for path in [ADDR, "/v1/sse/user?x=1"] {
            let answer = refused(&app, &format!("{path}&{name}={id}")).await;
            answer.assert_v1_error(400, "invalid_request");
        }
    }
    let twice = format!("{ADDR}&lastEventId={ours}&lastEventId={ours}");
    refused(&app, &twice).await.assert_v1_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn prefers_last_event_id_to_since() {
    let app = App::start().await;
    let mut stream = open_and_read_cursor(&app, ADDR).await;
    let since = stream.last_event_id().to_owned();
    app.deliver(ADDRESS, "met already", "").await;
    let id = stream.next().await.id;
    let mut stream = resumed(&app, &format!("{ADDR}&since={since}"), &id).await;
    assert_nothing_unread(&app, &mut stream, ADDRESS).await;
}

#[tokio::test]
async fn a_ping_carries_the_scanned_position() {
    const OTHER: &str = "/v1/inbox/other@inbox.localhost";
    let app = App::start().await;
    let streams = [open_and_read_cursor(&app, ADDR).await, open_and_read_cursor(&app, USER).await];
    let mut of_other = open_and_read_cursor(&app, "/v1/sse/addr?address=other@inbox.localhost").await;
    app.deliver("other@inbox.localhost", "scanned", "").await;
    // Every stream has scanned what one of them was notified of.
    assert_eq!(subjects(&mut of_other, 1).await, ["scanned"]);
    app.jump(PING).await;
    for mut stream in streams {
        let first = stream.last_event_id().to_owned();
        let ping = stream.block().await;
        assert_eq!((ping.comments, ping.event, ping.data), (vec!["ping".to_owned()], None, None));
        let cursor = ping.id.expect("a ping has an id");
        assert_ne!(cursor, first);
        let after_first = app.get(&format!("{OTHER}?since={first}")).await.expect(200);
        assert_eq!(after_first["emails"].as_array().unwrap().last().unwrap()["subject"], "scanned");
        app.deliver("other@inbox.localhost", "later", "").await;
        let after_ping = app.get(&format!("{OTHER}?since={cursor}")).await.expect(200);
        let oldest = after_ping["emails"].as_array().unwrap().last().unwrap();
        assert_eq!(oldest["subject"], "later", "the cursor of a ping is after the scanned mail");
    }
}
