//! The document's `webhooks`: the request that is sent to webhooks.

use serde_json::{Value, json};
use tempmail_model::webhook::EMAIL_RECEIVED;
use tempmail_store::Summary;
use utoipa::PartialSchema as _;

/// Names and descriptions of the header fields of each request.
const HEADERS: [(&str, &str); 6] = [
    ("X-Webhook-ID", "Id of the event, the same in every attempt."),
    ("X-Webhook-Timestamp", "Start of the attempt, in seconds since 1970."),
    (
        "X-Webhook-Signature",
        "`sha256=` and, in lowercase hexadecimal, the HMAC-SHA256 of the timestamp, a dot and the body, with the secret as the key.",
    ),
    ("webhook-id", "Id of the event, for Standard Webhooks."),
    ("webhook-timestamp", "Start of the attempt, for Standard Webhooks."),
    ("webhook-signature", "The signature of Standard Webhooks, whose key is the decoded part of the secret."),
];

/// The document's `webhooks`.
pub(super) fn webhooks() -> Value {
    let headers: Vec<Value> = HEADERS
        .iter()
        .map(|(name, description)| {
            json!({"name": name, "in": "header", "required": true, "description": description,
                   "schema": {"type": "string"}})
        })
        .collect();
    json!({EMAIL_RECEIVED: {"post": {
        "operationId": "emailReceived",
        "summary": "A mail was stored for a mailbox of the tenant",
        "description": "Sent to the `url` of each active webhook, at least once, until the answer is 2xx.",
        "tags": ["pro"],
        "security": [],
        "parameters": headers,
        "requestBody": {"required": true, "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/EmailReceived"},
        }}},
        "responses": {
            "2XX": {"description": "The event is delivered. Up to 16 KiB of the answer are read; nothing of it is stored."},
            "default": {"description": "The attempt failed, and the event is sent again later; the 10th consecutive failure disables the webhook."},
        },
    }}})
}

/// The schemas of the body, by name.
pub(super) fn schemas() -> [(&'static str, Value); 2] {
    let text = |description: &str| json!({"type": "string", "description": description});
    let uuid = |description: &str| json!({"type": "string", "format": "uuid", "description": description});
    let event = json!({"type": "object", "description": "The body of a request to a webhook.", "properties": {
        "id": {"type": "string", "pattern": "^evt_[0-9a-f-]{36}$",
               "description": "Id of the event: the same in every attempt, different for each webhook."},
        "type": {"type": "string", "enum": [EMAIL_RECEIVED]},
        "created_at": text("When the mail was stored."),
        "data": {"$ref": "#/components/schemas/ReceivedEmail"},
    }});
    let mut email = json!({"type": "object", "description": "The mail that an event reports.", "properties": {
        "email_id": uuid("Id of the message."),
        "account_id": uuid("Id of the mailbox."),
        "address": text("The exact recipient, with its tag."),
        "from": text("The From header, decoded."),
        "sender": text("The envelope's reverse-path; empty for bounces."),
        "size": {"type": "integer", "minimum": 0, "description": "In bytes."},
        "created_at": text("When the mail was stored."),
    }});
    // The other fields are those of every summary.
    let summary = json!(Summary::schema());
    if let (Some(fields), Some(common)) =
        (email["properties"].as_object_mut(), summary["properties"].as_object())
    {
        for (name, schema) in common {
            fields.entry(name).or_insert_with(|| schema.clone());
        }
    }
    [("EmailReceived", event), ("ReceivedEmail", email)]
}
