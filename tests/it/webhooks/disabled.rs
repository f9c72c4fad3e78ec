//! A webhook that failed ten times in a row.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::log;
use tempmail_tests::receiver::Reaction;

use super::schedule::Pair;
use super::{deliveries, has_failed, listed, nothing_waits, webhook_to};

#[tokio::test(flavor = "multi_thread")]
async fn the_tenth_failure_in_a_row_disables_it_once_and_drops_what_waits() {
    let mut pair = Pair::start().await;
    pair.disable().await;
    let webhook = listed(&pair.app, &pair.webhook).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("disabled"), &json!(10)));
    assert_eq!(webhook["last_triggered_at"], json!(null));
    nothing_waits(&pair.app).await;
    let id = pair.webhook.id.to_string();
    let said = log::captured();
    let said = said.lines().filter(|line| line.contains("was disabled") && line.contains(&id)).count();
    assert_eq!(said, 1, "it is said once");

    // Mail comes as before, others are told of it, and it is not, whatever time passes.
    for _ in 0..3 {
        pair.deliver().await;
        pair.app.advance_hours(4);
    }
    nothing_waits(&pair.app).await;
    assert_eq!((pair.failing.request_count(), pair.working.request_count()), (10, 13));
    assert_eq!(pair.app.emails("name@inbox.localhost").await.len(), 13);
    assert_eq!(deliveries(&pair.app, &pair.webhook).await.len(), 10);
    assert_eq!(listed(&pair.app, &pair.webhook).await["failure_count"], 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_its_place_begins_anew() {
    let mut pair = Pair::start().await;
    pair.disable().await;
    let path = format!("/pro/api/webhooks/{}", pair.webhook.id);
    let deleted = pair.app.request(Method::DELETE, &path).bearer(&pair.app.tenant.pro).send().await;
    assert_eq!(deleted.status, 204);
    let anew = webhook_to(&pair.app, &pair.failing.url()).await;
    pair.deliver().await;
    has_failed(&pair.app, &anew, 1).await;
    pair.failing.react_with(Reaction::Status(204));
    pair.app.clock.advance(SignedDuration::from_secs(6));
    nothing_waits(&pair.app).await;
    let requests = pair.failing.requests();
    assert_eq!(requests.len(), 12, "nothing of what was dropped comes back");
    assert!(requests[..10].iter().all(|request| request.is_signed_by(&pair.webhook.secret)));
    assert!(requests[10..].iter().all(|request| request.is_signed_by(&anew.secret)));
    let webhook = listed(&pair.app, &anew).await;
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    assert_eq!(deliveries(&pair.app, &anew).await.len(), 2);
}
