//! The body of requests. It is the same for every attempt, since a message never changes.

use serde::Serialize;
use tempmail_model::timestamp::timestamp;
use tempmail_model::webhook::EMAIL_RECEIVED;
use tempmail_store::{PendingEvent, Summary};
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
    #[serde(flatten)]
    summary: Summary,
}

/// The public id of an event.
pub(super) fn event_id(event: &PendingEvent) -> String {
    format!("evt_{}", event.id)
}

/// The body of the requests for an event.
pub(super) fn body(event: &PendingEvent) -> Vec<u8> {
    let message = &event.message;
    let payload = Payload {
        id: event_id(event),
        kind: EMAIL_RECEIVED,
        created_at: timestamp(message.created_at()),
        data: EmailReceived {
            email_id: message.id,
            account_id: message.owner,
            address: &message.address,
            from: &message.from_text,
            sender: &message.sender,
            summary: message.into(),
        },
    };
    serde_json::to_vec(&payload).expect("texts and numbers serialize to JSON")
}
