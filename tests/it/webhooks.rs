//! Delivery to webhooks: at least once, signed, and never into private networks.

mod attempts;
mod destinations;
mod pending;
pub(crate) mod processes;
mod receivers;
mod refused;
mod request;
mod retries;
mod samples;
mod secrets;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{TenantLimit, count_pending_events, set_limit, set_webhook_url};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, Response};
use uuid::Uuid;

use crate::pro_api::id_of;

/// A webhook, as the response to its creation shows it.
struct CreatedWebhook {
    id: Uuid,
    secret: String,
}

/// Creates a webhook of the default tenant.
async fn create_webhook(app: &App, url: &str) -> CreatedWebhook {
    create_webhook_as(app, &app.tenant.pro, url).await
}

/// Creates a webhook with this Pro token.
async fn create_webhook_as(app: &App, pro: &str, url: &str) -> CreatedWebhook {
    let body = json!({ "url": url, "events": ["email.received"] });
    let created =
        app.request(Method::POST, "/pro/api/webhooks").bearer(pro).json(&body).send().await.expect(201);
    CreatedWebhook { id: id_of(&created), secret: created["secret"].as_str().expect("a secret").to_owned() }
}

/// A running tempmail whose webhooks may reach receivers of tests, and one receiver.
async fn app_and_receiver() -> (App, Receiver) {
    (App::builder().receivers().start().await, Receiver::start().await)
}

/// The listed attempts, newest first.
async fn list_attempts(app: &App, webhook: &CreatedWebhook) -> Vec<Value> {
    let path = format!("/pro/api/webhooks/{}/deliveries", webhook.id);
    let listed: Response = app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await;
    listed.expect(200)["deliveries"].as_array().expect("a list").clone()
}

/// The webhook, as it is listed.
async fn get_webhook(app: &App, webhook: &CreatedWebhook) -> Value {
    let listed =
        app.request(Method::GET, "/pro/api/webhooks").bearer(&app.tenant.pro).send().await.expect(200);
    let all = listed["webhooks"].as_array().expect("a list");
    all.iter().find(|one| id_of(one) == webhook.id).expect("the webhook is listed").clone()
}

/// Waits until the webhook has failed at least this many times in a row: it is also retried while the test
/// is late.
async fn wait_for_failures(app: &App, webhook: &CreatedWebhook, failures: u32) {
    eventually(&format!("{failures} failures in a row"), || async {
        let count = get_webhook(app, webhook).await["failure_count"].as_u64().expect("a number");
        (count >= u64::from(failures)).then_some(())
    })
    .await;
}

/// Waits until no event is pending.
async fn wait_until_delivered(app: &App) {
    eventually("no event is pending", || async {
        (count_pending_events(&app.pool).await == 0).then_some(())
    })
    .await;
}

/// Creates a webhook for each of these URLs, delivers mail, and returns the first attempt at each. Some URLs can't be
/// created over HTTP any more: they are rows of an older version.
async fn first_attempts(app: &App, urls: &[String]) -> Vec<Value> {
    set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 1000).await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let mut attempts = Vec::new();
    // A few at a time: the names of all would have to be resolved within the same 4 s.
    for urls in urls.chunks(16) {
        let mut webhooks = Vec::new();
        for url in urls {
            let webhook = create_webhook(app, "https://hooks.example/").await;
            set_webhook_url(&app.pool, webhook.id, url).await;
            webhooks.push(webhook);
        }
        app.deliver("box@inbox.localhost", "Hello", "").await;
        for (webhook, url) in webhooks.iter().zip(urls) {
            let first = eventually(url, || async { list_attempts(app, webhook).await.pop() }).await;
            assert_eq!(first["attempt"], 1, "{url}");
            attempts.push(first);
        }
    }
    attempts
}

/// Status and error of an attempt.
fn outcome(attempt: &Value) -> (i64, Option<&str>) {
    (attempt["status_code"].as_i64().expect("a number"), attempt["error"].as_str())
}

/// Whether an attempt was blocked, and shows nothing else.
fn is_blocked(attempt: &Value) -> bool {
    outcome(attempt) == (0, Some("blocked_address")) && attempt["duration_ms"] == 0
}
