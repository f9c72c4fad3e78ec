//! `tempmail audit`: who made, changed or deleted what.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Executor as _;
use tempmail_store::{Actor, Store};
use tempmail_tests::rows::{TenantLimit, set_limit};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, Response};
use uuid::Uuid;

/// The audit trail of a database, read step by step.
struct Trail<'a> {
    app: &'a App,
    read: usize,
}

/// Actor, action, kind and subject of an entry.
type Entry = [String; 4];

impl<'a> Trail<'a> {
    /// From now on.
    async fn follow(app: &'a App) -> Self {
        let mut trail = Self { app, read: 0 };
        trail.next().await;
        trail
    }

    /// The entries since the last call.
    async fn next(&mut self) -> Vec<Entry> {
        let listed = self.app.tempmail("audit --json").await.json();
        let entries = &listed.as_array().expect("a list")[self.read..];
        self.read += entries.len();
        entries
            .iter()
            .map(|entry| ["actor", "action", "kind", "subject"].map(|key| text(entry, key)))
            .collect()
    }

    /// Asserts that there is one entry since the last call.
    async fn assert_next(&mut self, actor: &str, action: &str, kind: &str, subject: &str) {
        let expected: Entry = [actor, action, kind, subject].map(str::to_owned);
        assert_eq!(self.next().await, [expected]);
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{value} has no {key}")).to_owned()
}

async fn send(app: &App, credential: &str, method: Method, path: &str, body: Value) -> Response {
    app.request(method, path).bearer(credential).json(&body).send().await
}

async fn token_id(app: &App, hint_of: &str) -> Uuid {
    let hint = &hint_of[hint_of.len() - 4..];
    sqlx::query_scalar("SELECT id FROM api_token WHERE hint = $1 AND kind = 'pro'")
        .bind(hint)
        .fetch_one(&app.pool)
        .await
        .expect("there is one such token")
}

#[tokio::test(flavor = "multi_thread")]
async fn records_what_a_token_and_its_session_change() {
    let app = App::start().await;
    let pro = &app.tenant.pro;
    let token = token_id(&app, pro).await;
    let (by_token, by_session) = (format!("token {token}"), format!("session of token {token}"));
    let mut trail = Trail::follow(&app).await;

    let session = app.session(pro).await;
    trail.assert_next(&by_token, "created", "session", &token.to_string()).await;

    let created = send(&app, pro, Method::POST, "/pro/api/tokens", json!({"name": "ci"})).await.expect(201);
    let id = text(&created, "id");
    trail.assert_next(&by_token, "created", "token", &id).await;
    let path = format!("/pro/api/tokens/{id}");
    assert_eq!(send(&app, &session, Method::DELETE, &path, Value::Null).await.status, 204);
    trail.assert_next(&by_session, "revoked", "token", &id).await;

    let domain = json!({"domain": "ships.example"});
    let domain = send(&app, &session, Method::POST, "/pro/api/domains", domain).await.expect(201);
    trail.assert_next(&by_session, "created", "domain", &text(&domain, "id")).await;
    let path = format!("/pro/api/domains/{}", text(&domain, "id"));
    assert_eq!(send(&app, pro, Method::DELETE, &path, Value::Null).await.status, 204);
    trail.assert_next(&by_token, "deleted", "domain", &text(&domain, "id")).await;

    let webhook = json!({"url": "https://hooks.example.com/mail", "events": ["email.received"]});
    let webhook = send(&app, pro, Method::POST, "/pro/api/webhooks", webhook).await.expect(201);
    let id = text(&webhook, "id");
    trail.assert_next(&by_token, "created", "webhook", &id).await;
    let path = format!("/pro/api/webhooks/{id}/rotate");
    assert_eq!(send(&app, pro, Method::POST, &path, Value::Null).await.status, 200);
    trail.assert_next(&by_token, "rotated", "webhook", &id).await;
    let path = format!("/pro/api/webhooks/{id}");
    assert_eq!(send(&app, &session, Method::DELETE, &path, Value::Null).await.status, 204);
    trail.assert_next(&by_session, "deleted", "webhook", &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_changes_of_mailboxes_that_a_tenant_owns() {
    let app = App::start().await;
    let pro = &app.tenant.pro;
    let by_token = format!("token {}", token_id(&app, pro).await);
    let mut trail = Trail::follow(&app).await;

    let mailbox = app.mailbox(Some(pro), "own@inbox.localhost").await;
    let id = mailbox.id.to_string();
    trail.assert_next(&by_token, "created", "mailbox", &id).await;
    let path = format!("/pro/api/accounts/{id}/reset-password");
    let reset = send(&app, pro, Method::PUT, &path, json!({"password": mailbox.password})).await;
    assert_eq!(reset.status, 200, "{}", reset.text());
    trail.assert_next(&by_token, "rotated", "mailbox", &id).await;
    let signed_in = app.sign_in(&mailbox.address, &mailbox.password).await.expect(200);
    assert_eq!(trail.next().await, [[""; 4]; 0], "its use is no change");
    let deleted = send(&app, &text(&signed_in, "token"), Method::DELETE, "/api/me", Value::Null).await;
    assert_eq!(deleted.status, 204);
    trail.assert_next(&format!("mailbox {id}"), "deleted", "mailbox", &id).await;

    app.mailbox(None, "free@inbox.localhost").await;
    assert_eq!(trail.next().await, [[""; 4]; 0], "anybody makes free mailboxes");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_what_commands_change() {
    let app = App::start().await;
    let tenant = app.tenant.id.to_string();
    let mut trail = Trail::follow(&app).await;
    for (command, action) in [
        ("tenant suspend harbour", "suspended"),
        ("tenant resume harbour", "resumed"),
        ("tenant set harbour --tokens 7", "changed"),
    ] {
        app.tempmail(command).await.success();
        trail.assert_next("command", action, "tenant", &tenant).await;
    }
    let other = app.another_tenant("acme").await;
    app.tempmail("token create acme --kind live").await.success();
    let of_acme = app.tempmail("audit --json --tenant acme").await.json();
    assert!(of_acme.as_array().is_some_and(|entries| !entries.is_empty()));
    for entry in of_acme.as_array().into_iter().flatten() {
        assert_eq!(text(entry, "tenant"), other.id.to_string());
    }
    assert_eq!(app.tempmail("audit --json --limit 1").await.json().as_array().map(Vec::len), Some(1));
    let table = app.tempmail("audit").await;
    assert!(table.success().starts_with("TIME"), "{}", table.stdout);
    assert!(table.stdout.contains(" suspended  tenant "), "{}", table.stdout);
    assert!(app.tempmail("audit --tenant nobody").await.failure().contains("no tenant nobody"));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_nothing_of_a_change_that_is_refused() {
    let app = App::start().await;
    set_limit(&app.pool, app.tenant.id, TenantLimit::Tokens, 0).await;
    let mut trail = Trail::follow(&app).await;
    let refused = send(&app, &app.tenant.pro, Method::POST, "/pro/api/tokens", json!({"name": "ci"})).await;
    refused.assert_api_error(403, "token_limit_reached");
    assert_eq!(trail.next().await, [[""; 4]; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_nothing_to_the_actor_of_an_earlier_change() {
    let app = App::start().await;
    let mut trail = Trail::follow(&app).await;
    for nth in 0..10 {
        let body = json!({"name": format!("t{nth}")});
        send(&app, &app.tenant.pro, Method::POST, "/pro/api/tokens", body).await.expect(201);
    }
    assert_eq!(trail.next().await.len(), 10);
    // Over one connection, so that it is the one that carried the actor before.
    let store = Store::connect(&app.database().url(), 1, "a process").expect("our own URL is one");
    let actor = Actor::Token(Uuid::from_u128(7));
    assert!(store.acting(actor).set_tenant_suspended(app.tenant.id, true).await.is_ok());
    trail.assert_next(&actor.to_string(), "suspended", "tenant", &app.tenant.id.to_string()).await;
    assert!(store.set_tenant_suspended(app.tenant.id, false).await.is_ok());
    trail.assert_next("a process", "resumed", "tenant", &app.tenant.id.to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_entries_for_400_days() {
    let app = App::start().await;
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'audit'::regclass";
    let before = app.count(partitions).await;
    app.pool
        .execute(
            "SELECT ensure_audit_partition(clock_timestamp() - interval '435 days');
             SELECT ensure_audit_partition(clock_timestamp() - interval '380 days');",
        )
        .await
        .expect("the owner may");
    // A pass leaves a partition to the next one while another transaction reads it.
    let left = eventually("a partition is dropped", || async {
        app.worker_pass().await;
        let left = app.count(partitions).await;
        (left < before + 2).then_some(left)
    })
    .await;
    assert_eq!(left, before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_each_entry() {
    let fleet = Fleet::builder().ingests(0).apis(1).start().await;
    let body = json!({"name": "ci"});
    let request = fleet.request(0, Method::POST, "/pro/api/tokens").bearer(&fleet.tenant.pro).json(&body);
    let created = request.send().await.expect(201);
    let id = text(&created, "id");
    eventually("the worker logs the entry", || async {
        let log = fleet.worker(0).log();
        let line =
            log.lines().find(|line| line.contains("tempmail::audit") && line.contains(&id))?.to_owned();
        let entry: Value = serde_json::from_str(&line).expect("the log is JSON");
        assert_eq!((text(&entry, "action"), text(&entry, "kind")), ("created".into(), "token".into()));
        assert!(!line.contains(&text(&created, "token")), "an entry has ids only");
        Some(())
    })
    .await;
}
