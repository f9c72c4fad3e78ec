//! The database goes back, and positions of the stream are given a second time: no mail of another generation is served
//! before the process knows of it.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Executor as _;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, WebSocket};

const ADDRESS: &str = "twice@inbox.localhost";
/// Mails that the database loses, and those afterwards: more, so that positions above the cursor are given, too.
const LOST: usize = 2;
const AFTER: usize = 5;

async fn deliver(app: &App, kind: &str, count: usize) -> Vec<String> {
    let subjects: Vec<String> = (0..count).map(|number| format!("{kind} {number}")).collect();
    for subject in &subjects {
        assert_eq!(app.deliver(ADDRESS, subject, "").await.code, 250);
    }
    subjects
}

/// Takes away the newest mails and begins a generation, as a restored copy does that lacks them.
async fn lose_newest_mails(app: &App) {
    let statement = format!(
        "UPDATE stream SET seq = seq - {LOST}, generation = gen_random_uuid();
         DELETE FROM message WHERE seq > (SELECT seq FROM stream);
         INSERT INTO stream_generation (id, base) SELECT generation, seq FROM stream"
    );
    app.pool.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
}

fn subjects(listed: &Value) -> Vec<String> {
    let emails = listed["emails"].as_array().unwrap().iter().rev();
    emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_no_mail_of_an_unknown_generation() {
    let app = App::start().await;
    let live = &app.tenant.live;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    deliver(&app, "before", 1).await;
    deliver(&app, "lost", LOST).await;
    let cursor = app.cursor_as(live).await;
    let request = app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}&since={cursor}"));
    let mut stream = EventStream::open(request.live(live)).await;
    let mut socket = WebSocket::authenticated(app.http(), &mailbox.jwt).await;

    // Polls of the stream, which find another generation, wait for this lock.
    let mut lock = app.pool.begin().await.unwrap();
    lock.execute("LOCK TABLE change IN ACCESS EXCLUSIVE MODE").await.unwrap();
    lose_newest_mails(&app).await;
    let expected = deliver(&app, "after", AFTER).await;
    let long_poll = format!("/v1/inbox/{ADDRESS}?since={cursor}");
    let wait = json!({ "address": ADDRESS, "since": cursor });
    app.get(&long_poll).await.assert_v1_error(503, "unavailable");
    app.get(&format!("/v1/inbox/{ADDRESS}")).await.assert_v1_error(503, "unavailable");
    app.wait_for_email(live, &wait).await.assert_v1_error(503, "unavailable");
    let refused = app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}")).live(live);
    EventStream::refused(refused).await.assert_v1_error(503, "unavailable");
    lock.rollback().await.unwrap();

    let listed = eventually("a long-poll is answered", || async {
        let answer = app.get(&long_poll).await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(subjects(&listed), expected);
    let found = app.wait_for_email(live, &wait).await.expect(200);
    assert_eq!(found["email"]["subject"], expected[0].as_str());
    for subject in &expected {
        let event = stream.next().await;
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((event.name.as_str(), data["subject"].as_str()), ("new_email", Some(subject.as_str())));
        let pushed = socket.next_json().await;
        assert_eq!((&pushed["type"], &pushed["subject"]), (&json!("new_email"), &json!(subject)));
    }
}
