//! The secrets of webhooks are sealed: by which key, and what becomes of them without it.

use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tempmail_runtime::config::Key;
use tempmail_tests::app::random_key;
use tempmail_tests::fleet::Role;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Receiver};

use crate::security::at_rest::rows;

const BOX: &str = "name@inbox.localhost";

/// Writes `secrets.keys`.
fn write_keys(file: &Path, keys: &[&Key]) {
    let keys = keys.iter().map(|key| json!({ "kid": key.kid, "secret": key.secret.expose() }));
    fs::write(file, Value::from_iter(keys).to_string()).unwrap();
}

async fn ask(fleet: &Fleet, method: Method, path: &str, body: &Value) -> Value {
    let answer = fleet.request(0, method, path).bearer(&fleet.tenant.pro).json(body).send().await;
    assert!((200..300).contains(&answer.status), "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_replaced_and_one_that_is_missing_keeps_events_waiting() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("keys");
    let (old, new) = (random_key("old"), random_key("new"));
    write_keys(&file, &[&old]);
    let fleet = Fleet::builder()
        .apis(1)
        .ingests(1)
        .receivers()
        .env("TEMPMAIL_SECRETS__KEYS", "")
        .env("TEMPMAIL_SECRETS__KEYS_FILE", file.to_str().unwrap())
        .start()
        .await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let webhook = ask(&fleet, Method::POST, "/pro/api/webhooks", &body).await;
    let path = format!("/pro/api/webhooks/{}", webhook["id"].as_str().unwrap());
    let secret = webhook["secret"].as_str().unwrap();
    fleet.mailbox(Some(&fleet.tenant.pro), BOX).await;
    let listed =
        async || ask(&fleet, Method::GET, "/pro/api/webhooks", &json!({})).await["webhooks"][0].clone();

    // Before a worker ends: what it did not record is sent again.
    let recorded = async |count: usize| {
        eventually("attempts are recorded", || async {
            let listed = ask(&fleet, Method::GET, &format!("{path}/deliveries"), &json!({})).await;
            (listed["deliveries"].as_array().unwrap().len() == count).then_some(())
        })
        .await;
    };

    // The new key seals, and what the old one sealed is signed as before.
    write_keys(&file, &[&new, &old]);
    for pod in [fleet.api(0), fleet.worker(0)] {
        pod.restart().await;
    }
    fleet.deliver(0, BOX, "first").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(secret));
    recorded(1).await;

    // Without the old one nothing is sent, and that is no failure of the receiver.
    write_keys(&file, &[&new]);
    fleet.worker(0).restart().await;
    fleet.deliver(0, BOX, "second").await;
    eventually("the missing key is told of", || async {
        let log = fleet.worker(0).log();
        log.lines().any(|line| line.contains("ERROR") && line.contains("does not open")).then_some(())
    })
    .await;
    let state = listed().await;
    assert_eq!((&state["status"], &state["failure_count"]), (&json!("active"), &json!(0)));
    let deliveries = ask(&fleet, Method::GET, &format!("{path}/deliveries"), &json!({})).await;
    assert_eq!((receiver.request_count(), deliveries["deliveries"].as_array().unwrap().len()), (1, 1));

    // It is looked at again some time after the key is there.
    write_keys(&file, &[&new, &old]);
    fleet.worker(0).restart().await;
    assert!(receiver.wait_for_requests(2).await[1].is_signed_by(secret));
    recorded(2).await;

    // What is sealed anew needs the new key alone.
    let rotated = ask(&fleet, Method::POST, &format!("{path}/rotate"), &json!({})).await;
    let rotated = rotated["secret"].as_str().unwrap();
    write_keys(&file, &[&new]);
    fleet.worker(0).restart().await;
    fleet.deliver(0, BOX, "third").await;
    assert!(receiver.wait_for_requests(3).await[2].is_signed_by(rotated));

    // In no table and no log is a secret, with its prefix or without, as text or as octets.
    let mut places = vec![rows(&fleet.pool).await];
    places.extend([Role::Api, Role::Ingest, Role::Worker].map(|role| {
        fleet.processes().iter().filter(|pod| pod.role() == role).map(|pod| pod.log()).collect::<String>()
    }));
    for secret in [secret, rotated] {
        let random = secret.strip_prefix("whsec_").unwrap();
        let octets: String = random.bytes().map(|octet| format!("{octet:02x}")).collect();
        for (place, text) in places.iter().enumerate() {
            assert!(!text.contains(random) && !text.contains(&octets), "a secret is in place {place}");
        }
    }
}
