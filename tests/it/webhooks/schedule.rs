//! When a webhook that fails is tried again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use super::{Webhook, deliveries, has_failed, listed, nothing_waits, webhook_to, with_receiver};
use crate::pro_api::is_time;

/// Gaps after the first, second, … failure in a row, seconds; each is up to a fifth shorter or
/// longer.
const GAPS: [f64; 9] = [5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 10_800.0];
const BOX: &str = "name@inbox.localhost";
/// The fourth attempt is due so long after the third at the latest.
const FOURTH: SignedDuration = SignedDuration::from_secs(144);

/// Two webhooks of one tenant: one whose receiver the test lets fail, and one that works.
pub(super) struct Pair {
    pub(super) app: App,
    pub(super) failing: Receiver,
    pub(super) webhook: Webhook,
    pub(super) working: Receiver,
    mails: usize,
}

impl Pair {
    pub(super) async fn start() -> Self {
        let (app, failing) = with_receiver().await;
        app.tempmail("tenant set harbour --webhooks 2").await.success();
        let working = Receiver::start().await;
        let webhook = webhook_to(&app, &failing.url()).await;
        webhook_to(&app, &working.url()).await;
        app.mailbox(Some(&app.tenant.pro), BOX).await;
        Self { app, failing, webhook, working, mails: 0 }
    }

    /// With three failures, and 61 mails that wait for the attempt of [`FOURTH`]: long enough to
    /// deliver them on a slow machine.
    async fn start_with_61_waiting() -> Self {
        let mut pair = Self::start().await;
        pair.failing.react_next_with(vec![Reaction::Status(500); 3]);
        pair.deliver().await;
        for (failures, gap) in [(1, 6), (2, 36)] {
            has_failed(&pair.app, &pair.webhook, failures).await;
            pair.app.clock.advance(SignedDuration::from_secs(gap));
        }
        has_failed(&pair.app, &pair.webhook, 3).await;
        for _ in 0..60 {
            pair.deliver().await;
        }
        pair
    }

    /// Delivers a mail of which the webhook that works is told: so all webhooks that were due
    /// when it came have been looked for.
    pub(super) async fn deliver(&mut self) {
        self.mails += 1;
        self.app.deliver(BOX, &format!("mail {}", self.mails), "").await;
        self.working.wait_for_requests(self.mails).await;
    }

    /// Moves the clock to just before the earliest moment of the next attempt, counted from the
    /// last, where a new mail does not bring it forward; and then to the latest, where it comes.
    async fn is_tried_between(&mut self, earliest: f64, latest: f64) {
        let tried = deliveries(&self.app, &self.webhook).await.len();
        let almost = earliest * 0.98;
        self.app.clock.advance(SignedDuration::from_secs_f64(almost));
        self.deliver().await;
        self.app.clock.advance(SignedDuration::from_secs_f64(latest - almost));
        let times = eventually("it is tried again", || async {
            let mut attempts = deliveries(&self.app, &self.webhook).await;
            attempts.reverse();
            (attempts.len() > tried).then(|| attempts.iter().map(created_at).collect::<Vec<_>>())
        })
        .await;
        let gap = times[tried].duration_since(times[tried - 1]).as_secs_f64();
        assert!(gap >= earliest, "the {}. attempt came after {gap} s, not {earliest}", tried + 1);
    }

    /// Lets it fail ten times in a row.
    pub(super) async fn disable(&mut self) {
        self.failing.react_with(Reaction::Status(500));
        self.deliver().await;
        for (failures, gap) in (1..).zip(GAPS) {
            has_failed(&self.app, &self.webhook, failures).await;
            self.is_tried_between(0.8 * gap, 1.2 * gap).await;
        }
        has_failed(&self.app, &self.webhook, 10).await;
    }
}

fn created_at(attempt: &Value) -> Timestamp {
    attempt["created_at"].as_str().unwrap().parse().unwrap()
}

/// Numbers of the mails that a receiver was told of, in the order in which they came.
fn mails(receiver: &Receiver) -> Vec<usize> {
    let of = |event: Value| event["data"]["subject"].as_str().unwrap()["mail ".len()..].parse().unwrap();
    receiver.requests().iter().map(|request| of(request.event())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_failures_and_a_success_leave_it_active() {
    let mut pair = Pair::start().await;
    pair.failing.react_next_with(vec![Reaction::Status(500); 9]);
    pair.deliver().await;
    for (failures, gap) in (1..).zip(GAPS) {
        has_failed(&pair.app, &pair.webhook, failures).await;
        assert_eq!(listed(&pair.app, &pair.webhook).await["last_triggered_at"], json!(null));
        pair.is_tried_between(0.8 * gap, 1.2 * gap).await;
    }
    nothing_waits(&pair.app).await;
    let webhook = listed(&pair.app, &pair.webhook).await;
    is_time(&webhook["last_triggered_at"]);
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));

    // Ten times the same event, and then once each what waited for it.
    let requests = pair.failing.requests();
    let id_and_body =
        |request: &ReceivedRequest| (request.header("x-webhook-id").to_owned(), request.body.clone());
    for request in &requests[..10] {
        assert_eq!(id_and_body(request), id_and_body(&requests[0]));
    }
    let mut told = mails(&pair.failing).split_off(10);
    told.sort_unstable();
    assert_eq!(told, (2..=10).collect::<Vec<_>>());
    let mut attempts = deliveries(&pair.app, &pair.webhook).await;
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
async fn what_waited_while_it_failed_goes_out_in_the_order_in_which_it_came() {
    let pair = Pair::start_with_61_waiting().await;
    pair.app.clock.advance(FOURTH);
    nothing_waits(&pair.app).await;
    let told = mails(&pair.failing).split_off(3);
    assert_eq!(told[0], 1, "the one that failed comes first");
    let mut sorted = told.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=61).collect::<Vec<_>>(), "each of them once");
    for (mail, told) in (1_usize..).zip(&told) {
        assert!(mail.abs_diff(*told) < 16, "{told} overtook more than are under way together");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_together_counts_once() {
    let pair = Pair::start_with_61_waiting().await;
    // Successes make its window wide, and what then is under way fails together.
    pair.failing.react_next_with(vec![Reaction::Status(204); 20]);
    let together = Reaction::DelayedStatus(Duration::from_secs(3), 500);
    pair.failing.react_with(together.clone());
    pair.app.clock.advance(FOURTH);
    let failures = async || {
        let attempts = deliveries(&pair.app, &pair.webhook).await;
        attempts.iter().filter(|attempt| attempt["status_code"] == 500).count() - 3
    };
    eventually("one of them has failed", || async { (failures().await > 0).then_some(()) }).await;
    // The next attempt, in some seconds, has no end: it does not count before the test is over.
    pair.failing.react_with(Reaction::Hang);
    let failed = eventually("what was under way has failed", || async {
        let failed = failures().await;
        let sent = pair.failing.requests().iter().filter(|request| request.reaction == together).count();
        (failed == sent).then_some(failed)
    })
    .await;
    assert!((2..=16).contains(&failed), "{failed} were under way together");
    let webhook = listed(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_of_429_and_503_is_honoured_up_to_twice_the_gap() {
    let mut pair = Pair::start().await;
    let asks = |status, text: &str| Reaction::StatusWithHeader(status, "retry-after", text.to_owned());
    // Each with the earliest and the latest time of the next attempt, as shares of the gap.
    let cases = [
        (Reaction::Status(503), 0.8, 1.2),
        (asks(429, "45"), 1.5, 1.5),
        (asks(503, "180"), 1.5, 1.5),
        (asks(503, "999999"), 1.6, 2.4),
        (asks(429, "1"), 0.8, 1.2),
        (asks(500, "5400"), 0.8, 1.2),
        (asks(429, "Wed, 21 Oct 2099 07:28:00 GMT"), 0.8, 1.2),
        (asks(302, "16200"), 0.8, 1.2),
    ];
    pair.failing.react_next_with(cases.iter().map(|(reaction, ..)| reaction.clone()));
    pair.deliver().await;
    for ((failures, gap), (_, earliest, latest)) in (1..).zip(GAPS).zip(cases) {
        has_failed(&pair.app, &pair.webhook, failures).await;
        pair.is_tried_between(earliest * gap, latest * gap).await;
    }
    nothing_waits(&pair.app).await;
}
