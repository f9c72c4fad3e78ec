//! A new secret takes the place of the old one, whatever is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use super::schedule::Pair;
use super::{Webhook, deliveries, has_failed, listed, nothing_waits, webhook_to, with_receiver};

const BOX: &str = "name@inbox.localhost";
/// Requests that begin so long after the answer to a rotation are signed by the new secret.
const TAKES_EFFECT: Duration = Duration::from_secs(1);

/// Rotates the secret; the new one.
async fn rotate(app: &App, webhook: &Webhook) -> String {
    let path = format!("/pro/api/webhooks/{}/rotate", webhook.id);
    let rotated = app.request(Method::POST, &path).bearer(&app.tenant.pro).send().await.expect(200);
    rotated["secret"].as_str().unwrap().to_owned()
}

/// A running tempmail with a mailbox whose webhook goes to a receiver.
async fn with_mailbox() -> (App, Receiver, Webhook) {
    let (app, receiver) = with_receiver().await;
    let webhook = webhook_to(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    (app, receiver, webhook)
}

/// A secret, and from when on nothing else signs requests.
struct Signs {
    secret: String,
    alone_from: Instant,
}

/// Which secret signed a request.
fn signer(secrets: &[Signs], request: &ReceivedRequest) -> usize {
    let signer = secrets.iter().position(|one| request.is_signed_by(&one.secret));
    signer.expect("every request is signed by one of the secrets")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_second_later_is_signed_by_the_old_secret() {
    let (app, receiver, webhook) = with_mailbox().await;
    // Several are under way at every moment.
    receiver.react_with(Reaction::DelayedStatus(Duration::from_millis(50), 204));
    let mut secrets = vec![Signs { secret: webhook.secret.clone(), alone_from: Instant::now() }];
    let over = AtomicBool::new(false);
    let flow = async {
        let mut sent = 0;
        while !over.load(Ordering::Relaxed) {
            app.deliver(BOX, "one of many", "").await;
            sent += 1;
        }
        sent
    };
    let rotations = async {
        for _ in 0..5 {
            let known = secrets.len();
            eventually("the secret is in use, alone", || async {
                let from = secrets[known - 1].alone_from;
                receiver.requests().iter().rfind(|request| request.at >= from).map(|_| ())
            })
            .await;
            let secret = rotate(&app, &webhook).await;
            secrets.push(Signs { secret, alone_from: Instant::now() + TAKES_EFFECT });
        }
        let from = secrets[5].alone_from;
        eventually("the last secret is in use, alone", || async {
            receiver.requests().iter().rfind(|request| request.at >= from).map(|_| ())
        })
        .await;
        over.store(true, Ordering::Relaxed);
    };
    let (sent, ()) = tokio::join!(flow, rotations);
    nothing_waits(&app).await;
    let received = receiver.requests();
    assert_eq!(received.len(), sent, "each is told once");
    let mut uses = [0; 6];
    for request in &received {
        let signer = signer(&secrets, request);
        uses[signer] += 1;
        let newest = secrets.iter().rposition(|one| one.alone_from <= request.at).unwrap_or(0);
        assert!(
            signer >= newest,
            "{} is signed by secret {signer}, not {newest}",
            request.header("x-webhook-id")
        );
    }
    assert!(uses.iter().all(|count| *count > 0), "all secrets were in use: {uses:?}");
    assert_eq!(listed(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_makes_a_failing_webhook_due_at_once() {
    let (app, receiver, webhook) = with_mailbox().await;
    receiver.react_next_with(vec![Reaction::Status(500); 4]);
    app.deliver(BOX, "hello", "").await;
    for (failures, gap) in [(1, 6), (2, 36), (3, 144), (4, 0)] {
        has_failed(&app, &webhook, failures).await;
        app.clock.advance(jiff::SignedDuration::from_secs(gap));
    }
    // Ten minutes to go, if nothing were done.
    receiver.react_with(Reaction::Hang);
    let secret = rotate(&app, &webhook).await;
    let requests = receiver.wait_for_requests(5).await;
    assert!(requests[4].is_signed_by(&secret));
    assert_eq!(listed(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_began_before_the_rotation_does_not_count() {
    let (app, receiver, webhook) = with_mailbox().await;
    receiver.react_next_with([Reaction::DelayedStatus(Duration::from_secs(2), 500), Reaction::Hang]);
    app.deliver(BOX, "hello", "").await;
    receiver.wait_for_requests(1).await;
    let secret = rotate(&app, &webhook).await;
    let requests = receiver.wait_for_requests(2).await;
    assert!(requests[0].is_signed_by(&webhook.secret) && requests[1].is_signed_by(&secret));
    assert_eq!(deliveries(&app, &webhook).await[0]["status_code"], 500, "it is recorded");
    assert_eq!(listed(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_does_not_bring_a_disabled_webhook_back() {
    let mut pair = Pair::start().await;
    pair.disable().await;
    pair.failing.react_with(Reaction::Status(204));
    rotate(&pair.app, &pair.webhook).await;
    let webhook = listed(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(0)));
    for _ in 0..3 {
        pair.deliver().await;
    }
    nothing_waits(&pair.app).await;
    assert_eq!(pair.failing.request_count(), 10);
}
