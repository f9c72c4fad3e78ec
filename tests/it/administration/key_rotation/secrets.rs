//! `secrets.keys`: secrets of webhooks, cursors, and the key of verify tokens.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_runtime::config::Key;
use tempmail_tests::app::random_key;
use tempmail_tests::{Fleet, KeyFile, Receiver, Response, Tenant};

use super::{roll, wait_for_sealed_values};

const DOMAIN: &str = "ships.example";

/// A webhook of a tenant, and the mailbox whose mail it receives.
struct Subscription {
    tenant: Tenant,
    address: String,
    secret: String,
    receiver: Receiver,
}

/// A cursor of the first tenant, and the name of the key that sealed it.
struct SealedCursor {
    cursor: String,
    kid: String,
}

/// An installation whose `secrets.keys` are replaced, and what was made by its keys so far.
struct Rotation {
    fleet: Fleet,
    keys: KeyFile,
    /// Name of the first key of each `api` process.
    first_keys: [String; 2],
    subscriptions: Vec<Subscription>,
    cursors: Vec<SealedCursor>,
    verify_token: String,
}

impl Rotation {
    /// Two `api` processes and a worker, all with this key.
    async fn start(key: &Key) -> Self {
        let keys = KeyFile::new(&[key]);
        let fleet = Fleet::builder().apis(2).ingests(1).receivers().secrets_keys(&keys).start().await;
        let verify_token = verify_token(&fleet, 0).await;
        let first_keys = [key.kid.clone(), key.kid.clone()];
        let mut rotation =
            Self { fleet, keys, first_keys, subscriptions: Vec::new(), cursors: Vec::new(), verify_token };
        rotation.check(0).await;
        rotation
    }

    /// Gives all processes these keys, one after the other; after each, everything works. The worker is the last one, and
    /// so finds what the others sealed.
    async fn roll_out(&mut self, ring: &[&Key]) {
        self.keys.write(ring);
        for api in 0..2 {
            roll(self.fleet.api(api)).await;
            self.first_keys[api].clone_from(&ring[0].kid);
            self.check(api).await;
        }
        roll(self.fleet.worker(0)).await;
        self.deliver_to_all().await;
    }

    /// Creates another webhook at an `api` process, sends mail to all of them, and continues from all cursors.
    async fn check(&mut self, api: usize) {
        self.subscribe(api).await;
        self.deliver_to_all().await;
        for sealed in &self.cursors {
            for api in 0..2 {
                self.follow(api, &sealed.cursor).await.expect(200);
            }
        }
        for api in 0..2 {
            let listed = self.inbox(api, "").await.expect(200);
            let cursor = listed["next_since"].as_str().expect("a cursor").to_owned();
            self.cursors.push(SealedCursor { cursor, kid: self.first_keys[api].clone() });
            assert_eq!(verify_token(&self.fleet, api).await, self.verify_token);
        }
    }

    async fn subscribe(&mut self, api: usize) {
        let number = self.subscriptions.len();
        let tenant = self.fleet.another_tenant(&format!("tenant-{number}")).await;
        let address = format!("box-{number}@inbox.localhost");
        self.fleet.mailbox(Some(&tenant.pro), &address).await;
        let receiver = Receiver::start().await;
        let body = json!({ "url": receiver.url(), "events": ["email.received"] });
        let request = self.fleet.request(api, Method::POST, "/pro/api/webhooks").bearer(&tenant.pro);
        let created = request.json(&body).send().await.expect(201);
        let secret = created["secret"].as_str().expect("a secret").to_owned();
        self.subscriptions.push(Subscription { tenant, address, secret, receiver });
    }

    /// Sends a mail to each mailbox; each webhook receives it, signed with its secret.
    async fn deliver_to_all(&self) {
        for Subscription { address, secret, receiver, .. } in &self.subscriptions {
            let received = receiver.request_count();
            self.fleet.deliver(0, address, "across the rollout").await;
            let requests = receiver.wait_for_requests(received + 1).await;
            assert!(requests.iter().all(|request| request.is_signed_by(secret)), "{address}");
        }
    }

    /// The mail of the first mailbox after a cursor.
    async fn follow(&self, api: usize, cursor: &str) -> Response {
        self.inbox(api, &format!("?since={cursor}")).await
    }

    async fn inbox(&self, api: usize, query: &str) -> Response {
        let first = &self.subscriptions[0];
        let path = format!("/v1/inbox/{}{query}", first.address);
        self.fleet.request(api, Method::GET, &path).live(&first.tenant.live).send().await
    }

    /// Entries of the audit trail that say that a secret was replaced.
    async fn rotated_entries(&self) -> i64 {
        let statement = "SELECT count(*) FROM audit WHERE action = 'rotated'";
        sqlx::query_scalar(statement).fetch_one(&self.fleet.pool).await.expect("Postgres answers")
    }

    /// The webhook of a subscription, as it is listed.
    async fn listed_webhook(&self, subscription: &Subscription) -> Value {
        let request =
            self.fleet.request(0, Method::GET, "/pro/api/webhooks").bearer(&subscription.tenant.pro);
        request.send().await.expect(200)["webhooks"][0].clone()
    }
}

/// The verify token of a domain that is created at an `api` process, and deleted again.
async fn verify_token(fleet: &Fleet, api: usize) -> String {
    let request = fleet.request(api, Method::POST, "/pro/api/domains").bearer(&fleet.tenant.pro);
    let created = request.json(&json!({ "domain": DOMAIN })).send().await.expect(201);
    let path = format!("/pro/api/domains/{}", created["id"].as_str().expect("an id"));
    let deleted = fleet.request(api, Method::DELETE, &path).bearer(&fleet.tenant.pro).send().await;
    assert_eq!(deleted.status, 204);
    created["verify_token"].as_str().expect("a token").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_cursors_and_verify_tokens_outlive_the_key_that_sealed_them() {
    let (old, new) = (random_key("old"), random_key("new"));
    let mut rotation = Rotation::start(&old).await;
    rotation.roll_out(&[&old, &new]).await;
    rotation.roll_out(&[&new, &old]).await;

    // Everything is sealed again: all secrets, and the key of verify tokens.
    let sealed = rotation.subscriptions.len() + 1;
    wait_for_sealed_values(&rotation.fleet, [("first", sealed), ("other", 0), ("none", 0)]).await;

    // Nothing needs the old key any more but cursors, which clients keep.
    rotation.keys.write(&[&new]);
    for process in [rotation.fleet.api(0), rotation.fleet.api(1), rotation.fleet.worker(0)] {
        roll(process).await;
    }
    rotation.deliver_to_all().await;
    assert_eq!(verify_token(&rotation.fleet, 1).await, rotation.verify_token);
    for SealedCursor { cursor, kid } in &rotation.cursors {
        let answer = rotation.follow(1, cursor).await;
        match kid.as_str() {
            "old" => answer.assert_v1_error(400, "invalid_request"),
            _ => drop(answer.expect(200)),
        }
    }

    assert_eq!(rotation.rotated_entries().await, 0);
    for subscription in &rotation.subscriptions {
        let webhook = rotation.listed_webhook(subscription).await;
        assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    }
    let first = &rotation.subscriptions[0];
    let id = rotation.listed_webhook(first).await["id"].as_str().expect("an id").to_owned();
    let path = format!("/pro/api/webhooks/{id}/rotate");
    rotation.fleet.request(0, Method::POST, &path).bearer(&first.tenant.pro).send().await.expect(200);
    assert_eq!(rotation.rotated_entries().await, 1, "a rotation is recorded");
}
