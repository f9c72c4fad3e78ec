//! `/v1`

mod authentication;
mod config;
mod cursor;
mod domains;
mod email;
mod inbox;
mod inbox_deletion;
mod inbox_owner;
mod wait_slots;

use serde_json::Value;

/// The subjects of a list of summaries, in its order.
fn subjects(emails: &Value) -> Vec<&str> {
    emails
        .as_array()
        .expect("a list")
        .iter()
        .map(|email| email["subject"].as_str().expect("a text"))
        .collect()
}
