//! Secrets: a new one replaces the old one, also while requests are in flight; and the keys that seal them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::random_key;
use tempmail_tests::fleet::Role;
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::rows::make_webhooks_due;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, KeyFile, Receiver};

use super::retries::WebhookPair;
use super::{
    CreatedWebhook, app_and_receiver, create_webhook, get_webhook, list_attempts, wait_for_failures,
    wait_until_delivered,
};
use crate::administration::key_rotation::wait_for_sealed_values;
use crate::security::rows;

const BOX: &str = "name@inbox.localhost";

/// Rotations, and requests between two of them at least.
const ROTATIONS: usize = 5;

const REQUESTS: usize = 10;

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

/// How many rotations were over before the mail of a request was sent: its subject. No earlier secret signs
/// the request, however late it begins.
fn rotations_before(request: &ReceivedRequest) -> usize {
    request.event()["data"]["subject"].as_str().and_then(|text| text.parse().ok()).expect("a number")
}

/// Which secret signed a request.
fn signer(secrets: &[String], request: &ReceivedRequest) -> usize {
    let signer = secrets.iter().position(|secret| request.is_signed_by(secret));
    signer.expect("every request is signed by one of the secrets")
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_requests_after_a_rotation_with_the_new_secret() {
    let (app, receiver, webhook) = app_with_mailbox().await;
    // Several requests are in flight at any time.
    receiver.react_with(Reaction::DelayedStatus(Duration::from_millis(50), 204));
    let mut secrets = vec![webhook.secret.clone()];
    let (rotated, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let flow = async {
        let mut sent = 0;
        while !done.load(Ordering::Relaxed) {
            app.deliver(BOX, &rotated.load(Ordering::Relaxed).to_string(), "").await;
            sent += 1;
        }
        sent
    };
    let rotations = async {
        for number in 0..=ROTATIONS {
            rotated.store(number, Ordering::Relaxed);
            eventually("only the newest secret is in use", || async {
                let requests = receiver.requests();
                let signed = requests.iter().filter(|request| rotations_before(request) == number);
                (signed.count() >= REQUESTS).then_some(())
            })
            .await;
            if number < ROTATIONS {
                secrets.push(rotate(&app, &webhook).await);
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    let (sent, ()) = tokio::join!(flow, rotations);
    wait_until_delivered(&app).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), sent, "each is sent once");
    let mut uses = [0; ROTATIONS + 1];
    for request in &requests {
        let (signer, newest) = (signer(&secrets, request), rotations_before(request));
        uses[signer] += 1;
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

async fn request(fleet: &Fleet, method: Method, path: &str, body: &Value) -> Value {
    let response = fleet.request(0, method, path).bearer(&fleet.tenant.pro).json(body).send().await;
    assert!((200..300).contains(&response.status), "{}", response.text());
    response.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_events_pending_while_a_replaced_key_is_missing() {
    let (old, new) = (random_key("old"), random_key("new"));
    let keys = KeyFile::new(&[&old]);
    let fleet = Fleet::builder().apis(1).ingests(1).receivers().secrets_keys(&keys).start().await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let webhook = request(&fleet, Method::POST, "/pro/api/webhooks", &body).await;
    let path = format!("/pro/api/webhooks/{}", webhook["id"].as_str().unwrap());
    let secret = webhook["secret"].as_str().unwrap();
    fleet.mailbox(Some(&fleet.tenant.pro), BOX).await;
    let listed =
        async || request(&fleet, Method::GET, "/pro/api/webhooks", &json!({})).await["webhooks"][0].clone();

    // Before a worker restarts: an attempt that is not recorded would be repeated.
    let wait_for_attempts = async |count: usize| {
        eventually("attempts are recorded", || async {
            let listed = request(&fleet, Method::GET, &format!("{path}/deliveries"), &json!({})).await;
            (listed["deliveries"].as_array().unwrap().len() == count).then_some(())
        })
        .await;
    };

    fleet.deliver(0, BOX, "first").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(secret));
    wait_for_attempts(1).await;

    // Without the old key nothing is sent, and the receiver has not failed.
    keys.write(&[&new]);
    fleet.worker(0).restart().await;
    fleet.deliver(0, BOX, "second").await;
    eventually("the missing key is logged", || async {
        let log = fleet.worker(0).log();
        log.lines().any(|line| line.contains("ERROR") && line.contains("does not open")).then_some(())
    })
    .await;
    let state = listed().await;
    assert_eq!((&state["status"], &state["failure_count"]), (&json!("active"), &json!(0)));
    let deliveries = request(&fleet, Method::GET, &format!("{path}/deliveries"), &json!({})).await;
    assert_eq!((receiver.request_count(), deliveries["deliveries"].as_array().unwrap().len()), (1, 1));
    // The secret, and the key of verify tokens.
    wait_for_sealed_values(&fleet, [("first", 0), ("other", 0), ("none", 2)]).await;

    // With the key the event is sent when the webhook is due again: after a minute, for which the test does
    // not wait. The worker seals the secret again with the new key.
    keys.write(&[&new, &old]);
    for pod in [fleet.api(0), fleet.worker(0)] {
        pod.restart().await;
    }
    make_webhooks_due(&fleet.pool).await;
    assert!(receiver.wait_for_requests(2).await[1].is_signed_by(secret));
    wait_for_attempts(2).await;
    wait_for_sealed_values(&fleet, [("first", 2), ("other", 0), ("none", 0)]).await;

    // From then on the new key is enough, also for a rotated secret.
    keys.write(&[&new]);
    fleet.worker(0).restart().await;
    fleet.deliver(0, BOX, "third").await;
    assert!(receiver.wait_for_requests(3).await[2].is_signed_by(secret));
    let rotated = request(&fleet, Method::POST, &format!("{path}/rotate"), &json!({})).await;
    let rotated = rotated["secret"].as_str().unwrap();
    fleet.deliver(0, BOX, "fourth").await;
    assert!(receiver.wait_for_requests(4).await[3].is_signed_by(rotated));

    // No table and no log contains a secret, with or without its prefix, as text or in hexadecimal.
    let mut texts = vec![rows(&fleet.pool).await];
    texts.extend([Role::Api, Role::Ingest, Role::Worker].map(|role| {
        fleet.processes().iter().filter(|pod| pod.role() == role).map(|pod| pod.log()).collect::<String>()
    }));
    for secret in [secret, rotated] {
        let random = secret.strip_prefix("whsec_").unwrap();
        let hex: String = random.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (index, text) in texts.iter().enumerate() {
            assert!(!text.contains(random) && !text.contains(&hex), "a secret is in text {index}");
        }
    }
}
