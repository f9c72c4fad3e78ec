//! The keys that seal the secrets of webhooks: replacement, and a missing key.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::random_key;
use tempmail_tests::fleet::Role;
use tempmail_tests::rows::make_webhooks_due;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, KeyFile, Receiver};

use crate::administration::key_rotation::wait_for_sealed_values;
use crate::security::at_rest::rows;

const BOX: &str = "name@inbox.localhost";

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
