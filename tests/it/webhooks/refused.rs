//! Events that a receiver refuses while it accepts others, and receivers that are down: who waits for whom.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sqlx::Row as _;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::id_time;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{count_pending_events, set_webhook_failures};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};
use uuid::Uuid;

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, get_webhook, list_attempts, wait_for_failures,
    wait_until_delivered,
};

const BOX: &str = "name@inbox.localhost";
const NEIGHBOUR: &str = "neighbour@inbox.localhost";
/// In the subject of mails that the receiver refuses.
const REFUSED: &str = "crashes the handler";
/// The gaps after the first, second, … attempt, in seconds; each is up to a fifth shorter or longer.
const GAPS: [i64; 9] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 10_800, 10_800];

/// Two mailboxes of a tenant, and its webhook, whose receiver refuses some mails.
struct RefusingFixture {
    app: App,
    receiver: Receiver,
    webhook: CreatedWebhook,
}

/// An attempt for one event.
#[derive(Debug)]
struct Attempt {
    at: Timestamp,
    number: i32,
    given_up: bool,
}

impl RefusingFixture {
    /// With a clock that stands still unless a test moves it: what is sent meanwhile waits for no delay.
    async fn start() -> Self {
        let fixture = Self::start_with_running_clock().await;
        fixture.app.clock.pause();
        fixture
    }

    async fn start_with_running_clock() -> Self {
        let (app, receiver) = app_and_receiver().await;
        let webhook = create_webhook(&app, &receiver.url()).await;
        for address in [BOX, NEIGHBOUR] {
            app.mailbox(Some(&app.tenant.pro), address).await;
        }
        receiver.react_to_text_with(REFUSED, Reaction::Status(500));
        Self { app, receiver, webhook }
    }

    /// The subjects of requests so far, in order.
    fn subjects(&self) -> Vec<String> {
        let subject = |event: serde_json::Value| event["data"]["subject"].as_str().unwrap().to_owned();
        self.receiver.requests().iter().map(|request| subject(request.event())).collect()
    }

    fn count_requests(&self, subject: &str) -> usize {
        self.subjects().iter().filter(|other| *other == subject).count()
    }

    /// Waits until there was a request for a mail.
    async fn wait_for_request(&self, subject: &str) {
        eventually(&format!("a request for {subject}"), || async {
            (self.count_requests(subject) > 0).then_some(())
        })
        .await;
    }

    /// All recorded attempts that failed, oldest first.
    async fn failed_attempts(&self) -> Vec<Attempt> {
        let statement =
            "SELECT id, attempt, given_up FROM webhook_delivery WHERE error IS NOT NULL ORDER BY id";
        let rows = sqlx::query(statement).fetch_all(&self.app.pool).await.unwrap();
        rows.iter()
            .map(|row| Attempt {
                at: id_time(row.get::<Uuid, _>("id")).unwrap(),
                number: row.get("attempt"),
                given_up: row.get("given_up"),
            })
            .collect()
    }

    async fn assert_active(&self, failures: u32) {
        let webhook = get_webhook(&self.app, &self.webhook).await;
        assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(failures)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_a_refused_event_up_after_ten_attempts_while_others_are_delivered() {
    let fixture = RefusingFixture::start().await;
    let app = &fixture.app;
    app.deliver(BOX, REFUSED, "").await;
    fixture.wait_for_request(REFUSED).await;
    let began = app.clock.now();
    let step = SignedDuration::from_mins(2);
    let mut mails = 0;
    while app.clock.now().duration_since(began) < SignedDuration::from_hours(12) {
        for address in [BOX, NEIGHBOUR] {
            mails += 1;
            let subject = format!("mail {mails}");
            app.deliver(address, &subject, "").await;
            fixture.wait_for_request(&subject).await;
        }
        app.clock.advance(step);
    }
    wait_until_delivered(app).await;
    fixture.assert_active(0).await;
    let attempts = fixture.failed_attempts().await;
    let numbers: Vec<i32> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    for (pair, gap) in attempts.windows(2).zip(GAPS) {
        let waited = pair[1].at.duration_since(pair[0].at);
        let gap = SignedDuration::from_secs(gap);
        assert!(waited >= gap.mul_f64(0.79), "{waited:?} after attempt {}", pair[0].number);
        assert!(waited <= gap.mul_f64(1.21) + step * 2, "{waited:?} after attempt {}", pair[0].number);
    }
    let given_up: Vec<bool> = attempts.iter().map(|attempt| attempt.given_up).collect();
    assert_eq!(given_up, [vec![false; 9], vec![true]].concat());
    assert_eq!(fixture.receiver.request_count(), mails + 10, "all others were sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_to_others_behind_ten_refused_events() {
    let fixture = RefusingFixture::start().await;
    let app = &fixture.app;
    // Failing, so that all wait.
    set_webhook_failures(&app.pool, 1).await;
    app.deliver(BOX, REFUSED, "").await;
    wait_for_failures(app, &fixture.webhook, 2).await;
    for _ in 0..9 {
        app.deliver(BOX, REFUSED, "").await;
    }
    for number in 1..=20 {
        app.deliver(NEIGHBOUR, &format!("mail {number}"), "").await;
    }
    assert_eq!(fixture.receiver.request_count(), 1, "the webhook waits");
    app.clock.advance(SignedDuration::from_secs(36));
    for number in 1..=20 {
        fixture.wait_for_request(&format!("mail {number}")).await;
    }
    eventually("only refused events are pending", || async {
        (count_pending_events(&app.pool).await == 10).then_some(())
    })
    .await;
    let subjects = fixture.subjects();
    assert_eq!(subjects[1], "mail 1", "the probe is of the mailbox that has not failed");
    assert_eq!(get_webhook(app, &fixture.webhook).await["status"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn disables_the_webhook_if_ten_events_in_a_row_are_refused_and_nothing_else_succeeds() {
    // An attempt counts if it began after the last one failed.
    let fixture = RefusingFixture::start_with_running_clock().await;
    let app = &fixture.app;
    let began = app.clock.now();
    app.deliver(BOX, REFUSED, "").await;
    wait_for_failures(app, &fixture.webhook, 1).await;
    for _ in 0..12 {
        app.deliver(BOX, REFUSED, "").await;
    }
    // The second is tried at once.
    for (failures, gap) in (2..=9).zip(&GAPS[1..]) {
        wait_for_failures(app, &fixture.webhook, failures).await;
        assert_eq!(
            list_attempts(app, &fixture.webhook).await.len(),
            usize::try_from(failures).unwrap(),
            "one at a time"
        );
        app.clock.advance(SignedDuration::from_secs(*gap).mul_f64(1.2));
    }
    wait_for_failures(app, &fixture.webhook, 10).await;
    let webhook = get_webhook(app, &fixture.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(10)));
    assert_eq!(count_pending_events(&app.pool).await, 0);
    assert_eq!(fixture.receiver.request_count(), 10);
    assert!(app.clock.now().duration_since(began) > SignedDuration::from_hours(9));
    let attempts = fixture.failed_attempts().await;
    assert!(attempts.iter().all(|attempt| attempt.number == 1 && !attempt.given_up), "{attempts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disables_the_webhook_of_a_receiver_that_is_down_for_12_hours() {
    let fixture = RefusingFixture::start().await;
    let app = &fixture.app;
    // Each breaks the connection.
    fixture.receiver.react_to_text_with("mail", Reaction::Disconnect);
    let began = app.clock.now();
    app.deliver(BOX, "mail 0", "").await;
    for (failures, gap) in (1..=9).zip(GAPS) {
        wait_for_failures(app, &fixture.webhook, failures).await;
        for number in 1..=5 {
            app.deliver(BOX, &format!("mail {failures}.{number}"), "").await;
        }
        assert_eq!(
            fixture.receiver.request_count(),
            usize::try_from(failures).unwrap(),
            "one attempt after each delay"
        );
        app.clock.advance(SignedDuration::from_secs(gap).mul_f64(1.2));
    }
    wait_for_failures(app, &fixture.webhook, 10).await;
    assert!(app.clock.now().duration_since(began) < SignedDuration::from_hours(12));
    let webhook = get_webhook(app, &fixture.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(10)));
    assert_eq!(fixture.receiver.request_count(), 10);
    wait_until_delivered(app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_another_event_at_once_after_a_status_and_later_after_a_broken_connection() {
    for (reaction, is_tried_at_once) in [(Reaction::Status(503), true), (Reaction::Disconnect, false)] {
        let fixture = RefusingFixture::start().await;
        let app = &fixture.app;
        fixture.receiver.react_to_text_with(REFUSED, reaction.clone());
        app.deliver(BOX, REFUSED, "").await;
        wait_for_failures(app, &fixture.webhook, 1).await;
        app.deliver(BOX, "mail", "").await;
        if is_tried_at_once {
            fixture.wait_for_request("mail").await;
            wait_until_active(&fixture).await;
        } else {
            let other = app.another_tenant("other").await;
            let working = Receiver::start().await;
            super::create_webhook_as(app, &other.pro, &working.url()).await;
            app.mailbox(Some(&other.pro), "other@inbox.localhost").await;
            app.deliver("other@inbox.localhost", "polled", "").await;
            working.wait_for_requests(1).await;
            assert_eq!(fixture.count_requests("mail"), 0, "{reaction:?}");
            app.clock.advance(SignedDuration::from_secs(6));
            fixture.wait_for_request("mail").await;
        }
    }
}

async fn wait_until_active(fixture: &RefusingFixture) {
    eventually("the webhook has not failed last", || async {
        (get_webhook(&fixture.app, &fixture.webhook).await["failure_count"] == 0).then_some(())
    })
    .await;
}

/// A refused event that hangs when it is tried again does not hold up the events that come meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn delivers_others_while_a_refused_event_is_tried_again() {
    let fixture = RefusingFixture::start().await;
    let app = &fixture.app;
    app.deliver(BOX, REFUSED, "").await;
    wait_for_failures(app, &fixture.webhook, 1).await;
    app.deliver(BOX, "mail 0", "").await;
    wait_until_active(&fixture).await;
    fixture.receiver.react_to_text_with(REFUSED, Reaction::HeldStatus(500));
    app.clock.advance(SignedDuration::from_secs(6));
    eventually("the refused event is tried again", || async {
        (fixture.count_requests(REFUSED) == 2).then_some(())
    })
    .await;
    for number in 1..=20 {
        let subject = format!("mail {number}");
        app.deliver(BOX, &subject, "").await;
        fixture.wait_for_request(&subject).await;
    }
    assert_eq!(fixture.count_requests(REFUSED), 2);
    fixture.receiver.release_held();
    wait_for_failures(app, &fixture.webhook, 1).await;
}

/// After the receiver is repaired, a rotation sends at once what was refused.
#[tokio::test(flavor = "multi_thread")]
async fn tries_refused_events_again_at_once_after_a_rotation() {
    let fixture = RefusingFixture::start().await;
    let app = &fixture.app;
    for number in 1..=3 {
        app.clock.advance(SignedDuration::from_millis(1));
        app.deliver(BOX, &format!("{REFUSED} {number}"), "").await;
        // Two failures in a row would make the webhook wait.
        wait_for_failures(app, &fixture.webhook, 1).await;
        app.deliver(NEIGHBOUR, &format!("mail {number}"), "").await;
        wait_until_active(&fixture).await;
    }
    eventually("three events wait", || async { (count_pending_events(&app.pool).await == 3).then_some(()) })
        .await;
    fixture.receiver.react_to_text_with(REFUSED, Reaction::Status(204));
    let path = format!("/pro/api/webhooks/{}/rotate", fixture.webhook.id);
    app.request(reqwest::Method::POST, &path).bearer(&app.tenant.pro).send().await.expect(200);
    wait_until_delivered(app).await;
    fixture.assert_active(0).await;
    assert_eq!(fixture.receiver.request_count(), 9);
}
