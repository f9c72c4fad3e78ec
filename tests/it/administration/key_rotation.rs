//! Replacing the keys of an installation, by the steps of `docs/operations.md`.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Executor as _, PgPool};
use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::VerifyTokenKeySealer;
use tempmail_runtime::config::Key;
use tempmail_store::{ResealedWebhookSecret, SealedWebhookSecret, Store};
use tempmail_tests::app::{Mailbox, random_key};
use tempmail_tests::binary::program;
use tempmail_tests::fleet::{Role, RoleProcess};
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::Database;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Binary, Feed, Fleet, KeyFile, Receiver, Response, Tenant};
use uuid::Uuid;

/// Replaces a process, as a rollout does.
async fn roll(process: &RoleProcess) {
    process.terminate().await;
    process.restart().await;
}

/// Waits until the worker has counted this many sealed values by the key that sealed them.
pub(crate) async fn wait_for_sealed_values(fleet: &Fleet, expected: [(&str, usize); 3]) {
    eventually(&format!("the sealed values are {expected:?}"), || async {
        let metrics = fleet.worker(0).metrics().await;
        let is_there = |(key, count): (&str, usize)| {
            metrics.lines().any(|line| line == format!("tempmail_sealed_values{{key=\"{key}\"}} {count}"))
        };
        expected.into_iter().all(is_there).then_some(())
    })
    .await;
}

const BOX: &str = "name@inbox.localhost";

/// A JWT, and where it is a credential.
struct IssuedJwt {
    jwt: String,
    path: &'static str,
}

impl IssuedJwt {
    fn new(path: &'static str, signed_in: &Value) -> Self {
        Self { jwt: signed_in["token"].as_str().expect("a JWT").to_owned(), path }
    }

    /// Name of the key that signed it.
    fn kid(&self) -> String {
        let header = self.jwt.split('.').next().expect("a JWT has a header");
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        header["kid"].as_str().expect("a JWT names its key").to_owned()
    }

    async fn present(&self, fleet: &Fleet, api: usize) -> Response {
        fleet.request(api, Method::GET, self.path).bearer(&self.jwt).send().await
    }
}

/// Signs in to the mailbox, and exchanges the Pro token, at an `api` process.
async fn sign_in(fleet: &Fleet, api: usize, mailbox: &Mailbox) -> [IssuedJwt; 2] {
    let password = json!({ "address": mailbox.address, "password": mailbox.password });
    let token = json!({ "token": fleet.tenant.pro });
    let post = async |path: &str, body: &Value| {
        fleet.request(api, Method::POST, path).json(body).send().await.expect(200)
    };
    [
        IssuedJwt::new("/api/me", &post("/api/token", &password).await),
        IssuedJwt::new("/pro/api/accounts", &post("/pro/api/session", &token).await),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_process_accepts_every_jwt_until_its_key_is_removed() {
    let (old, new) = (random_key("old"), random_key("new"));
    let keys = KeyFile::new(&[&old]);
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).jwt_keys(&keys).start().await;
    let mailbox = fleet.mailbox(None, BOX).await;
    let mut socket = fleet.follow(0, &mailbox.jwt, Feed::WebSocket);
    socket.ready().await;
    let (mut issued, mut delivered) = (Vec::new(), 0);

    // First every process learns the new key, then every process signs with it.
    for ring in [[&old, &new], [&new, &old]] {
        keys.write(&ring);
        for rolled in 0..2 {
            roll(fleet.api(rolled)).await;
            socket.switch_to(fleet.http(rolled));
            for api in 0..2 {
                issued.extend(sign_in(&fleet, api, &mailbox).await);
            }
            for jwt in &issued {
                for api in 0..2 {
                    let status = jwt.present(&fleet, api).await.status;
                    assert_eq!(status, 200, "a JWT of {} at {api}, after {rolled} of {ring:?}", jwt.kid());
                }
            }
            fleet.deliver(0, BOX, "across the rollout").await;
            delivered += 1;
            socket.wait_for(delivered).await;
        }
    }

    keys.write(&[&new]);
    for api in 0..2 {
        roll(fleet.api(api)).await;
    }
    let mut ended = 0;
    for jwt in &issued {
        for api in 0..2 {
            let answer = jwt.present(&fleet, api).await;
            if jwt.kid() == "old" {
                answer.assert_api_error(401, "invalid_token");
                ended += 1;
            } else {
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        }
    }
    assert!((1..2 * issued.len()).contains(&ended), "both keys signed: {ended}");
    assert_eq!(socket.refused().await, "invalid_token");
    socket.stop().await;
    for api in 0..2 {
        for jwt in sign_in(&fleet, api, &mailbox).await {
            assert_eq!(jwt.present(&fleet, 1 - api).await.status, 200);
        }
    }
}

/// Why there are two rollouts.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_rejects_a_jwt_of_a_key_that_it_does_not_have_yet() {
    let (old, new) = (random_key("old"), random_key("new"));
    let keys = KeyFile::new(&[&old]);
    let fleet = Fleet::builder().apis(2).ingests(0).workers(0).jwt_keys(&keys).start().await;
    let mailbox = fleet.mailbox(None, BOX).await;
    keys.write(&[&new, &old]);
    roll(fleet.api(0)).await;
    for jwt in sign_in(&fleet, 0, &mailbox).await {
        assert_eq!(jwt.present(&fleet, 0).await.status, 200);
        jwt.present(&fleet, 1).await.assert_api_error(401, "invalid_token");
    }
}

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
";

fn ring(kid: &str) -> Vec<MasterKey> {
    vec![MasterKey::new(kid, &[7; 32]).expect("32 bytes are enough")]
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_at_once_agree_on_one_key_of_verify_tokens() {
    let database = Database::create().await;
    let url = database.role_url(Role::Api);
    let stores = [(); 8].map(|()| Store::connect(&url, 1, "tempmail tests").expect("our own URL is one"));
    let sealer = VerifyTokenKeySealer::new(&ring("a"));
    let kept = join_all(stores.iter().map(|store| {
        let generated = sealer.generate().expect("there is randomness");
        async move { store.ensure_verify_token_key(&generated).await.expect("Postgres answers") }
    }))
    .await;
    assert!(kept.iter().all(|key| *key == kept[0]), "{kept:?}");
    assert_eq!(stores[0].find_verify_token_key().await.expect("Postgres answers").as_ref(), Some(&kept[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_key_that_sealed_that_of_verify_tokens_names_it_and_does_not_start() {
    let database = Database::create().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one");
    let generated = VerifyTokenKeySealer::new(&ring("removed")).generate().expect("there is randomness");
    store.ensure_verify_token_key(&generated).await.expect("Postgres answers");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let kubeconfig = directory.path().join("kubeconfig");
    fs::write(&kubeconfig, KUBECONFIG).expect("a file can be written");
    let keys = |kid: &str, digit: &str| json!([{ "kid": kid, "secret": digit.repeat(32) }]).to_string();

    for (role, command) in [(Role::Api, "api"), (Role::Operator, "operator")] {
        let mut process = Command::new(program());
        process.arg(command).env_clear();
        process.env("TEMPMAIL_POSTGRES__URL", database.role_url(role));
        process.env("TEMPMAIL_ADMIN__LISTEN", free_port().to_string());
        process.env("TEMPMAIL_HTTP__LISTEN", free_port().to_string());
        process.env("TEMPMAIL_JWT__KEYS", keys("jwt", "1"));
        process.env("TEMPMAIL_SECRETS__KEYS", keys("kept", "2"));
        process.env("KUBECONFIG", &kubeconfig);
        let mut process = Binary::spawn(process);
        assert_eq!(process.wait().code(), Some(1));
        let expected = "`secrets.keys` has no key that opens the key of verify tokens: put the key \"removed\", \
                        which sealed it, back into `secrets.keys`";
        let log = process.stderr();
        assert_eq!(log.lines().last(), Some(format!("tempmail: {command}: {expected}").as_str()));
    }
}

/// A webhook of the default tenant, and the store as the worker has it.
async fn app_with_webhook() -> (App, Store, String) {
    let app = App::start().await;
    let store = Store::connect(&app.database().role_url(Role::Worker), 1, "tempmail tests");
    let body = json!({ "url": "https://hooks.example/", "events": ["email.received"] });
    let request = app.request(Method::POST, "/pro/api/webhooks").bearer(&app.tenant.pro).json(&body);
    let created = request.send().await.expect(201);
    let id = created["id"].as_str().expect("an id").to_owned();
    (app, store.expect("our own URL is one"), id)
}

async fn secret_of_webhook(store: &Store) -> SealedWebhookSecret {
    let mut secrets = store.list_webhook_secrets(Uuid::nil(), 10).await.expect("Postgres answers");
    assert_eq!(secrets.len(), 1);
    secrets.remove(0)
}

async fn rotated_entries(pool: &PgPool) -> i64 {
    let statement = "SELECT count(*) FROM audit WHERE action = 'rotated'";
    sqlx::query_scalar(statement).fetch_one(pool).await.expect("Postgres answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_wins_over_sealing_the_former_secret_again() {
    let (app, store, id) = app_with_webhook().await;
    let former = secret_of_webhook(&store).await;
    let path = format!("/pro/api/webhooks/{id}/rotate");
    app.request(Method::POST, &path).bearer(&app.tenant.pro).send().await.expect(200);
    let rotated = secret_of_webhook(&store).await;
    let resealed = ResealedWebhookSecret { former, resealed: b"sealed again".to_vec() };
    assert_eq!(store.reseal_webhook_secrets(&[resealed]).await.expect("Postgres answers"), 0);
    assert_eq!(secret_of_webhook(&store).await, rotated);
    assert_eq!(rotated_entries(&app.pool).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_worker_can_seal_a_secret_again_without_an_entry_in_the_audit_trail() {
    let (app, store, _) = app_with_webhook().await;
    let former = secret_of_webhook(&store).await;
    let resealed = ResealedWebhookSecret { former, resealed: b"sealed again".to_vec() };
    assert_eq!(store.reseal_webhook_secrets(&[resealed]).await.expect("Postgres answers"), 1);
    assert_eq!(secret_of_webhook(&store).await.sealed, b"sealed again");
    assert_eq!(rotated_entries(&app.pool).await, 0);
    for role in [Role::Api, Role::Operator] {
        let other = Store::connect(&app.database().role_url(role), 1, "tempmail tests");
        let pool = other.expect("our own URL is one").pool().clone();
        let refused = pool.execute("UPDATE webhook SET reseals = reseals + 1").await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some("42501"), "{role:?}");
    }
    let replaced = "UPDATE webhook SET secret = 'another'";
    app.pool.execute(replaced).await.expect("the owner may");
    assert_eq!(rotated_entries(&app.pool).await, 1);
}

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
