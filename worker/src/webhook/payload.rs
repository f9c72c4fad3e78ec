//! The body of requests. It is the same for every attempt, since a message never changes.

use serde::Serialize;
use tempmail_model::timestamp::timestamp;
use tempmail_model::webhook::EMAIL_RECEIVED;
use tempmail_store::PendingEvent;
use uuid::Uuid;

#[derive(Serialize)]
struct Payload<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    created_at: String,
    data: EmailReceived<'a>,
}

#[derive(Serialize)]
struct EmailReceived<'a> {
    email_id: Uuid,
    account_id: Uuid,
    address: &'a str,
    from: &'a str,
    sender: &'a str,
    subject: &'a str,
    preview_text: &'a str,
    size: i32,
    created_at: String,
}

/// The public id of an event.
pub(super) fn event_id(event: &PendingEvent) -> String {
    format!("evt_{}", event.id)
}

/// The body of the requests for an event.
pub(super) fn body(event: &PendingEvent) -> Vec<u8> {
    let message = &event.message;
    let created_at = timestamp(message.created_at());
    let payload = Payload {
        id: event_id(event),
        kind: EMAIL_RECEIVED,
        created_at: created_at.clone(),
        data: EmailReceived {
            email_id: message.id,
            account_id: message.owner,
            address: &message.address,
            from: &message.from_text,
            sender: &message.sender,
            subject: &message.subject,
            preview_text: &message.preview,
            size: message.size,
            created_at,
        },
    };
    serde_json::to_vec(&payload).expect("texts and numbers serialize to JSON")
}
