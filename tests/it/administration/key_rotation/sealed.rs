//! What the store keeps sealed: the key of verify tokens, and the secrets of webhooks.

use std::fs;
use std::process::Command;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use sqlx::{Executor as _, PgPool};
use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::VerifyTokenKeySealer;
use tempmail_store::{ResealedWebhookSecret, SealedWebhookSecret, Store};
use tempmail_tests::binary::program;
use tempmail_tests::fleet::Role;
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::Database;
use tempmail_tests::{App, Binary};
use uuid::Uuid;

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
