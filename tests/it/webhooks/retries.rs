//! When a webhook that failed is retried, and webhooks that have failed ten times in a row.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::rows::set_webhook_failures;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, log};

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, create_webhook_as, get_webhook, list_attempts,
    wait_for_failures, wait_until_delivered,
};
use crate::pro_api::assert_time;

/// Delays after the first, second, … failure in a row, in seconds; each is up to a fifth shorter or longer.
const DELAYS: [f64; 9] = [5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 10_800.0];

const BOX: &str = "name@inbox.localhost";

const OTHER_BOX: &str = "other@inbox.localhost";

/// The longest delay of the fifth attempt after the fourth.
const FIFTH_DELAY_MAX: SignedDuration = SignedDuration::from_mins(12);

/// Two webhooks of one tenant: one whose receiver fails as the test says, and one that works. Another tenant has one that
/// works, too.
pub(super) struct WebhookPair {
    pub(super) app: App,
    pub(super) failing: Receiver,
    pub(super) webhook: CreatedWebhook,
    pub(super) working: Receiver,
    other: Receiver,
    mails: usize,
}

impl WebhookPair {
    pub(super) async fn start() -> Self {
        let (app, failing) = app_and_receiver().await;
        app.tempmail("tenant set harbour --webhooks 2").await.success();
        let working = Receiver::start().await;
        let webhook = create_webhook(&app, &failing.url()).await;
        create_webhook(&app, &working.url()).await;
        app.mailbox(Some(&app.tenant.pro), BOX).await;
        let (tenant, other) = (app.another_tenant("other").await, Receiver::start().await);
        create_webhook_as(&app, &tenant.pro, &other.url()).await;
        app.mailbox(Some(&tenant.pro), OTHER_BOX).await;
        Self { app, failing, webhook, working, other, mails: 0 }
    }

    /// With one failed attempt, and 61 mails whose events are pending until the next one.
    async fn start_with_61_pending() -> Self {
        let mut pair = Self::start().await;
        pair.failing.react_next_with([Reaction::Status(500)]);
        // The next attempt is ten minutes after the failure, however long the mails take.
        set_webhook_failures(&pair.app.pool, 3).await;
        pair.deliver().await;
        wait_for_failures(&pair.app, &pair.webhook, 4).await;
        for _ in 0..60 {
            pair.deliver().await;
        }
        pair
    }

    /// Delivers a mail, and waits until the webhook that works got it: so all webhooks that were due were
    /// polled.
    pub(super) async fn deliver(&mut self) {
        self.mails += 1;
        self.app.deliver(BOX, &format!("mail {}", self.mails), "").await;
        self.working.wait_for_requests(self.mails).await;
    }

    /// Waits until all webhooks that were due were polled.
    pub(super) async fn wait_for_a_poll(&self) {
        let before = self.other.request_count();
        self.app.deliver(OTHER_BOX, "a poll", "").await;
        self.other.wait_for_requests(before + 1).await;
    }

    /// Moves the clock to just before the earliest time of the attempt after so many failures, at which it is not made;
    /// then to the latest time, and waits for the attempt.
    pub(super) async fn assert_retried_between(&self, failures: u32, earliest: f64, latest: f64) {
        let previous = usize::try_from(failures).expect("a few");
        let almost = earliest * 0.98;
        self.app.clock.advance(SignedDuration::from_secs_f64(almost));
        self.wait_for_a_poll().await;
        self.app.clock.advance(SignedDuration::from_secs_f64(latest - almost));
        let times = eventually("the webhook is retried", || async {
            let mut attempts = list_attempts(&self.app, &self.webhook).await;
            attempts.reverse();
            (attempts.len() > previous).then(|| attempts.iter().map(created_at).collect::<Vec<_>>())
        })
        .await;
        let delay = times[previous].duration_since(times[previous - 1]).as_secs_f64();
        assert!(delay >= earliest, "attempt {} was made after {delay} s, not {earliest}", previous + 1);
    }

    /// Lets the webhook fail ten times in a row.
    pub(super) async fn disable(&mut self) {
        self.failing.react_with(Reaction::Status(500));
        self.deliver().await;
        for (failures, delay) in (1..).zip(DELAYS) {
            wait_for_failures(&self.app, &self.webhook, failures).await;
            self.assert_retried_between(failures, 0.8 * delay, 1.2 * delay).await;
        }
        wait_for_failures(&self.app, &self.webhook, 10).await;
    }
}

fn created_at(attempt: &Value) -> Timestamp {
    attempt["created_at"].as_str().unwrap().parse().unwrap()
}

/// Numbers of the mails in the order in which the receiver got them.
fn received_mails(receiver: &Receiver) -> Vec<usize> {
    let of = |event: Value| event["data"]["subject"].as_str().unwrap()["mail ".len()..].parse().unwrap();
    receiver.requests().iter().map(|request| of(request.event())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn stays_active_after_nine_failures_and_a_success() {
    let mut pair = WebhookPair::start().await;
    pair.failing.react_next_with(vec![Reaction::Status(500); 9]);
    pair.deliver().await;
    for (failures, delay) in (1..).zip(DELAYS) {
        wait_for_failures(&pair.app, &pair.webhook, failures).await;
        assert_eq!(get_webhook(&pair.app, &pair.webhook).await["last_triggered_at"], json!(null));
        pair.assert_retried_between(failures, 0.8 * delay, 1.2 * delay).await;
    }
    wait_until_delivered(&pair.app).await;
    let webhook = get_webhook(&pair.app, &pair.webhook).await;
    assert_time(&webhook["last_triggered_at"]);
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));

    // Ten times the same event.
    let requests = pair.failing.requests();
    let id_and_body =
        |request: &ReceivedRequest| (request.header("x-webhook-id").to_owned(), request.body.clone());
    assert_eq!(requests.len(), 10);
    for request in &requests {
        assert_eq!(id_and_body(request), id_and_body(&requests[0]));
    }
    let mut attempts = list_attempts(&pair.app, &pair.webhook).await;
    attempts.reverse();
    for (number, attempt) in (1..).zip(&attempts[..10]) {
        let (status, error) = if number < 10 { (500, json!("http_status")) } else { (204, json!(null)) };
        assert_eq!(
            (&attempt["attempt"], &attempt["status_code"], &attempt["error"]),
            (&json!(number), &json!(status), &error)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_events_that_were_never_tried_in_order_after_a_failure() {
    let pair = WebhookPair::start_with_61_pending().await;
    pair.app.clock.advance(FIFTH_DELAY_MAX);
    wait_until_delivered(&pair.app).await;
    let mut received = received_mails(&pair.failing).split_off(1);
    assert_eq!(received[0], 2, "the oldest that was never tried comes first");
    let mut sorted = received.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=61).collect::<Vec<_>>(), "each of them once");
    let retried = received.iter().position(|mail| *mail == 1).unwrap();
    assert!(retried <= 20, "the one that failed was sent as number {retried}");
    received.remove(retried);
    for (position, mail) in (2_usize..).zip(&received) {
        // A slow request may be overtaken by any number, but overtakes only those in flight with it.
        assert!(*mail < position + 16, "{mail} overtook more than are in flight together");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_requests_that_fail_together_once() {
    let pair = WebhookPair::start_with_61_pending().await;
    // Successes widen its window; requests that are then in flight fail together.
    pair.failing.react_next_with(vec![Reaction::Status(204); 20]);
    let together = Reaction::HeldStatus(500);
    pair.failing.react_with(together.clone());
    pair.app.clock.advance(FIFTH_DELAY_MAX);
    let held = || pair.failing.requests().iter().filter(|request| request.reaction == together).count();
    eventually("some are in flight", || async { (held() >= 2).then_some(()) }).await;
    // A success that is recorded after a failure would end the row of failures.
    eventually("the successes are recorded", || async {
        let attempts = list_attempts(&pair.app, &pair.webhook).await;
        (attempts.iter().filter(|attempt| attempt["status_code"] == 204).count() == 20).then_some(())
    })
    .await;
    // Later attempts are never answered: they do not count before the test ends.
    pair.failing.react_with(Reaction::Hang);
    pair.failing.release_held();
    let failed = eventually("all requests in flight have failed", || async {
        let attempts = list_attempts(&pair.app, &pair.webhook).await;
        let failed = attempts.iter().filter(|attempt| attempt["status_code"] == 500).count() - 1;
        (failed == held()).then_some(failed)
    })
    .await;
    assert!((2..=16).contains(&failed), "{failed} were in flight together");
    let webhook = get_webhook(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_retry_after_of_429_and_503_up_to_twice_the_delay() {
    let mut pair = WebhookPair::start().await;
    let retry_after = |status, text: &str| Reaction::StatusWithHeader(status, "retry-after", text.to_owned());
    // Each with the shortest and the longest time to the next attempt, as shares of the delay.
    let cases = [
        (Reaction::Status(503), 0.8, 1.2),
        (retry_after(429, "45"), 1.5, 1.5),
        (retry_after(503, "180"), 1.5, 1.5),
        (retry_after(503, "999999"), 1.6, 2.4),
        (retry_after(429, "1"), 0.8, 1.2),
        (retry_after(500, "5400"), 0.8, 1.2),
        (retry_after(429, "Wed, 21 Oct 2099 07:28:00 GMT"), 1.6, 2.4),
        (retry_after(302, "16200"), 0.8, 1.2),
    ];
    pair.failing.react_next_with(cases.iter().map(|(reaction, ..)| reaction.clone()));
    pair.deliver().await;
    for ((failures, delay), (_, earliest, latest)) in (1..).zip(DELAYS).zip(cases) {
        wait_for_failures(&pair.app, &pair.webhook, failures).await;
        pair.assert_retried_between(failures, earliest * delay, latest * delay).await;
    }
    wait_until_delivered(&pair.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disables_a_webhook_and_drops_its_events_after_ten_failures_in_a_row() {
    let mut pair = WebhookPair::start().await;
    pair.disable().await;
    let webhook = get_webhook(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(10)));
    assert_eq!(webhook["last_triggered_at"], json!(null));
    wait_until_delivered(&pair.app).await;
    let id = pair.webhook.id.to_string();
    let logged = || {
        let log = log::captured();
        log.lines().filter(|line| line.contains("was disabled") && line.contains(&id)).count()
    };
    eventually("it is logged", || async { (logged() > 0).then_some(()) }).await;

    // Mail is accepted as before, and delivered to other webhooks only, whatever time passes.
    for _ in 0..3 {
        pair.deliver().await;
        pair.app.advance_hours(4);
    }
    wait_until_delivered(&pair.app).await;
    assert_eq!((pair.failing.request_count(), pair.working.request_count()), (10, 4));
    assert_eq!(pair.app.emails("name@inbox.localhost").await.len(), 4);
    assert_eq!(list_attempts(&pair.app, &pair.webhook).await.len(), 10);
    assert_eq!(get_webhook(&pair.app, &pair.webhook).await["failure_count"], 10);
    assert_eq!(logged(), 1, "one log line");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_webhook_starts_without_the_events_of_a_disabled_one() {
    let mut pair = WebhookPair::start().await;
    pair.disable().await;
    let path = format!("/pro/api/webhooks/{}", pair.webhook.id);
    let deleted = pair.app.request(Method::DELETE, &path).bearer(&pair.app.tenant.pro).send().await;
    assert_eq!(deleted.status, 204);
    let replacement = create_webhook(&pair.app, &pair.failing.url()).await;
    pair.failing.react_with(Reaction::Status(204));
    pair.failing.react_next_with([Reaction::Status(500)]);
    pair.deliver().await;
    eventually("an attempt", || async { list_attempts(&pair.app, &replacement).await.pop() }).await;
    pair.app.clock.advance(SignedDuration::from_secs(6));
    wait_until_delivered(&pair.app).await;
    let requests = pair.failing.requests();
    assert_eq!(requests.len(), 12, "dropped events do not come back");
    assert!(requests[..10].iter().all(|request| request.is_signed_by(&pair.webhook.secret)));
    assert!(requests[10..].iter().all(|request| request.is_signed_by(&replacement.secret)));
    let webhook = get_webhook(&pair.app, &replacement).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    assert_eq!(list_attempts(&pair.app, &replacement).await.len(), 2);
}
