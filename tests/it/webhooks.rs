//! What webhooks are sent: at least once, signed, and nowhere inside.

mod deletion;
mod disabled;
mod document;
mod event;
mod guard;
mod ledger;
mod metrics;
mod receivers;
mod records;
mod rotation;
mod samples;
mod schedule;
mod secrets;
mod waiting;
mod which;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, Response};
use uuid::Uuid;

use crate::pro_api::id_of;

/// A webhook of the tenant, as its creation answered it.
struct Webhook {
    id: Uuid,
    secret: String,
}

/// A webhook of the tenant that goes to a URL.
async fn webhook_to(app: &App, url: &str) -> Webhook {
    webhook_of(app, &app.tenant.pro, url).await
}

/// A webhook of the tenant that has this Pro token.
async fn webhook_of(app: &App, pro: &str, url: &str) -> Webhook {
    let body = json!({ "url": url, "events": ["email.received"] });
    let made =
        app.request(Method::POST, "/pro/api/webhooks").bearer(pro).json(&body).send().await.expect(201);
    Webhook { id: id_of(&made), secret: made["secret"].as_str().expect("a secret").to_owned() }
}

/// A running tempmail whose webhooks reach receivers of the test, and one of these.
async fn with_receiver() -> (App, Receiver) {
    (App::builder().receivers().start().await, Receiver::start().await)
}

/// The attempts that are listed, newest first.
async fn deliveries(app: &App, webhook: &Webhook) -> Vec<Value> {
    let path = format!("/pro/api/webhooks/{}/deliveries", webhook.id);
    let listed: Response = app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await;
    listed.expect(200)["deliveries"].as_array().expect("a list").clone()
}

/// The webhook, as it is listed.
async fn listed(app: &App, webhook: &Webhook) -> Value {
    let listed =
        app.request(Method::GET, "/pro/api/webhooks").bearer(&app.tenant.pro).send().await.expect(200);
    let all = listed["webhooks"].as_array().expect("a list");
    all.iter().find(|one| id_of(one) == webhook.id).expect("the webhook is listed").clone()
}

/// Waits until the webhook has failed so often in a row.
async fn has_failed(app: &App, webhook: &Webhook, failures: u32) {
    eventually(&format!("{failures} failures in a row"), || async {
        (listed(app, webhook).await["failure_count"] == failures).then_some(())
    })
    .await;
}

/// Waits until no event waits.
async fn nothing_waits(app: &App) {
    eventually("no event waits", || async {
        (app.count("SELECT count(*) FROM webhook_event").await == 0).then_some(())
    })
    .await;
}

/// The first attempt at each of these URLs, told of one mail. Some are of the kind that can't be created
/// any more: they are rows of an older version.
async fn first_attempts(app: &App, urls: &[String]) -> Vec<Value> {
    sqlx::query("UPDATE tenant SET webhook_limit = 1000").execute(&app.pool).await.unwrap();
    let mut webhooks = Vec::new();
    for url in urls {
        let webhook = webhook_to(app, "https://hooks.example/").await;
        sqlx::query("UPDATE webhook SET url = $1 WHERE id = $2")
            .bind(url)
            .bind(webhook.id)
            .execute(&app.pool)
            .await
            .unwrap();
        webhooks.push(webhook);
    }
    app.mailbox(Some(&app.tenant.pro), "told@inbox.localhost").await;
    app.deliver("told@inbox.localhost", "Told", "").await;
    let mut attempts = Vec::new();
    for (webhook, url) in webhooks.iter().zip(urls) {
        let first = eventually(url, || async { deliveries(app, webhook).await.pop() }).await;
        assert_eq!(first["attempt"], 1, "{url}");
        attempts.push(first);
    }
    attempts
}

/// What a record tells of an attempt's end.
fn outcome(attempt: &Value) -> (i64, Option<&str>) {
    (attempt["status_code"].as_i64().expect("a number"), attempt["error"].as_str())
}

/// Whether it was blocked, as every other one is that was.
fn is_blocked(attempt: &Value) -> bool {
    outcome(attempt) == (0, Some("blocked_address")) && attempt["duration_ms"] == 0
}
