//! Rotation: a new secret replaces the old one, also while requests are in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use super::retries::WebhookPair;
use super::{
    CreatedWebhook, app_and_receiver, create_webhook, get_webhook, list_attempts, wait_for_failures,
    wait_until_delivered,
};

const BOX: &str = "name@inbox.localhost";
/// Requests that begin this long after the response to a rotation are signed by the new secret.
const TAKES_EFFECT: SignedDuration = SignedDuration::from_secs(1);

/// Rotates the secret, and returns the new one.
async fn rotate(app: &App, webhook: &CreatedWebhook) -> String {
    let path = format!("/pro/api/webhooks/{}/rotate", webhook.id);
    let rotated = app.request(Method::POST, &path).bearer(&app.tenant.pro).send().await.expect(200);
    rotated["secret"].as_str().unwrap().to_owned()
}

/// A running tempmail with a mailbox, a receiver, and its webhook.
async fn app_with_mailbox() -> (App, Receiver, CreatedWebhook) {
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    (app, receiver, webhook)
}

/// A secret, and the time from which on no earlier one signs requests.
struct SecretInUse {
    secret: String,
    exclusive_from: Timestamp,
}

/// When a request began: it may arrive much later.
fn began_at(request: &ReceivedRequest) -> Timestamp {
    let seconds: i64 = request.header("x-webhook-timestamp").parse().expect("a number");
    Timestamp::from_second(seconds).expect("a time")
}

/// Which secret signed a request.
fn signer(secrets: &[SecretInUse], request: &ReceivedRequest) -> usize {
    let signer = secrets.iter().position(|one| request.is_signed_by(&one.secret));
    signer.expect("every request is signed by one of the secrets")
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_requests_a_second_after_a_rotation_with_the_new_secret() {
    let (app, receiver, webhook) = app_with_mailbox().await;
    // Several requests are in flight at any time.
    receiver.react_with(Reaction::DelayedStatus(Duration::from_millis(50), 204));
    let mut secrets = vec![SecretInUse { secret: webhook.secret.clone(), exclusive_from: app.clock.now() }];
    let done = AtomicBool::new(false);
    let flow = async {
        let mut sent = 0;
        while !done.load(Ordering::Relaxed) {
            app.deliver(BOX, "one of many", "").await;
            sent += 1;
        }
        sent
    };
    let rotations = async {
        for _ in 0..5 {
            let known = secrets.len();
            eventually("only this secret is in use", || async {
                let from = secrets[known - 1].exclusive_from;
                receiver.requests().iter().rfind(|request| began_at(request) >= from).map(|_| ())
            })
            .await;
            let secret = rotate(&app, &webhook).await;
            secrets.push(SecretInUse { secret, exclusive_from: app.clock.now() + TAKES_EFFECT });
        }
        let from = secrets[5].exclusive_from;
        eventually("only the last secret is in use", || async {
            receiver.requests().iter().rfind(|request| began_at(request) >= from).map(|_| ())
        })
        .await;
        done.store(true, Ordering::Relaxed);
    };
    let (sent, ()) = tokio::join!(flow, rotations);
    wait_until_delivered(&app).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), sent, "each is sent once");
    let mut uses = [0; 6];
    for request in &requests {
        let signer = signer(&secrets, request);
        uses[signer] += 1;
        let newest = secrets.iter().rposition(|one| one.exclusive_from <= began_at(request)).unwrap_or(0);
        assert!(
            signer >= newest,
            "{} is signed by secret {signer}, not {newest}",
            request.header("x-webhook-id")
        );
    }
    assert!(uses.iter().all(|count| *count > 0), "all secrets were in use: {uses:?}");
    assert_eq!(get_webhook(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn makes_a_failing_webhook_due_at_once() {
    let (app, receiver, webhook) = app_with_mailbox().await;
    receiver.react_next_with(vec![Reaction::Status(500); 4]);
    app.deliver(BOX, "hello", "").await;
    for (failures, delay) in [(1, 6), (2, 36), (3, 144), (4, 0)] {
        wait_for_failures(&app, &webhook, failures).await;
        app.clock.advance(SignedDuration::from_secs(delay));
    }
    // The next attempt would be in ten minutes.
    receiver.react_with(Reaction::Hang);
    let secret = rotate(&app, &webhook).await;
    let requests = receiver.wait_for_requests(5).await;
    assert!(requests[4].is_signed_by(&secret));
    assert_eq!(get_webhook(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_count_a_failure_that_began_before_the_rotation() {
    let (app, receiver, webhook) = app_with_mailbox().await;
    receiver.react_next_with([Reaction::HeldStatus(500), Reaction::Hang]);
    app.deliver(BOX, "hello", "").await;
    receiver.wait_for_requests(1).await;
    let secret = rotate(&app, &webhook).await;
    receiver.release_held();
    let requests = receiver.wait_for_requests(2).await;
    assert!(requests[0].is_signed_by(&webhook.secret) && requests[1].is_signed_by(&secret));
    assert_eq!(list_attempts(&app, &webhook).await[0]["status_code"], 500, "it is recorded");
    assert_eq!(get_webhook(&app, &webhook).await["failure_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_enable_a_disabled_webhook() {
    let mut pair = WebhookPair::start().await;
    pair.disable().await;
    pair.failing.react_with(Reaction::Status(204));
    rotate(&pair.app, &pair.webhook).await;
    let webhook = get_webhook(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(0)));
    for _ in 0..3 {
        pair.deliver().await;
    }
    wait_until_delivered(&pair.app).await;
    assert_eq!(pair.failing.request_count(), 10);
}
