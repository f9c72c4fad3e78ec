//! Webhooks that have failed ten times in a row.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::log;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

use super::retries::WebhookPair;
use super::{create_webhook, get_webhook, list_attempts, wait_until_delivered};

#[tokio::test(flavor = "multi_thread")]
async fn disables_a_webhook_and_drops_its_events_after_ten_failures_in_a_row() {
    let mut pair = WebhookPair::start().await;
    pair.disable().await;
    let webhook = get_webhook(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(10)));
    assert_eq!(webhook["last_triggered_at"], json!(null));
    wait_until_delivered(&pair.app).await;
    let id = pair.webhook.id.to_string();
    let logged = || {
        let log = log::captured();
        log.lines().filter(|line| line.contains("was disabled") && line.contains(&id)).count()
    };
    eventually("it is logged", || async { (logged() > 0).then_some(()) }).await;

    // Mail is accepted as before, and delivered to other webhooks only, whatever time passes.
    for _ in 0..3 {
        pair.deliver().await;
        pair.app.advance_hours(4);
    }
    wait_until_delivered(&pair.app).await;
    assert_eq!((pair.failing.request_count(), pair.working.request_count()), (10, 4));
    assert_eq!(pair.app.emails("name@inbox.localhost").await.len(), 4);
    assert_eq!(list_attempts(&pair.app, &pair.webhook).await.len(), 10);
    assert_eq!(get_webhook(&pair.app, &pair.webhook).await["failure_count"], 10);
    assert_eq!(logged(), 1, "one log line");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_webhook_starts_without_the_events_of_a_disabled_one() {
    let mut pair = WebhookPair::start().await;
    pair.disable().await;
    let path = format!("/pro/api/webhooks/{}", pair.webhook.id);
    let deleted = pair.app.request(Method::DELETE, &path).bearer(&pair.app.tenant.pro).send().await;
    assert_eq!(deleted.status, 204);
    let replacement = create_webhook(&pair.app, &pair.failing.url()).await;
    pair.failing.react_with(Reaction::Status(204));
    pair.failing.react_next_with([Reaction::Status(500)]);
    pair.deliver().await;
    eventually("an attempt", || async { list_attempts(&pair.app, &replacement).await.pop() }).await;
    pair.app.clock.advance(SignedDuration::from_secs(6));
    wait_until_delivered(&pair.app).await;
    let requests = pair.failing.requests();
    assert_eq!(requests.len(), 12, "dropped events do not come back");
    assert!(requests[..10].iter().all(|request| request.is_signed_by(&pair.webhook.secret)));
    assert!(requests[10..].iter().all(|request| request.is_signed_by(&replacement.secret)));
    let webhook = get_webhook(&pair.app, &replacement).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    assert_eq!(list_attempts(&pair.app, &replacement).await.len(), 2);
}
