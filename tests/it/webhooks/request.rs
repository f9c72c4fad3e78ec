//! The request for a mail.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempmail_tests::rows::count_pending_events;
use tempmail_tests::wait::eventually;
use uuid::Uuid;

use super::{app_and_receiver, create_webhook, get_webhook, list_attempts};
use crate::pro_api::assert_time;

/// The id of a webhook's event: a UUIDv8 of the SHA-256 of the ids of webhook and message.
fn event_id(webhook: Uuid, message: &str) -> String {
    let ids = [webhook, message.parse().unwrap()].map(Uuid::into_bytes).concat();
    let digest = Sha256::digest(ids);
    let id = uuid::Builder::from_custom_bytes(digest[..16].try_into().unwrap()).into_uuid();
    format!("evt_{id}")
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_signs_and_records_a_mail_to_a_mailbox() {
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name+tag@inbox.localhost", "Hello", "").await;
    let request = receiver.wait_for_requests(1).await.remove(0);
    let message = app.messages(&mailbox).await.remove(0);
    let event = request.event();
    let id = event["id"].as_str().unwrap();
    assert_eq!(id, event_id(webhook.id, message["id"].as_str().unwrap()));
    assert_eq!(
        event,
        json!({
            "id": id,
            "type": "email.received",
            "created_at": message["created_at"],
            "data": {
                "email_id": message["id"],
                "account_id": mailbox.id,
                "address": "name+tag@inbox.localhost",
                "from": message["from"],
                "sender": message["sender"],
                "subject": "Hello",
                "preview_text": message["preview_text"],
                "size": message["size"],
                "created_at": message["created_at"],
            },
        })
    );
    assert_eq!(request.header("x-webhook-id"), id);
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.is_signed_by(&webhook.secret) && !request.is_signed_by("whsec_AAAA"));
    let attempt =
        eventually("the attempt is recorded", || async { list_attempts(&app, &webhook).await.pop() }).await;
    assert_time(&attempt["created_at"]);
    assert_eq!(
        (&attempt["event_id"], &attempt["status_code"], &attempt["error"], &attempt["attempt"]),
        (&json!(id), &json!(204), &json!(null), &json!(1))
    );
    let webhook = get_webhook(&app, &webhook).await;
    assert_time(&webhook["last_triggered_at"]);
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    assert_eq!(count_pending_events(&app.pool).await, 0);
}
