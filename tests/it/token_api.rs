//! `/v1`

mod authentication;
mod config {
    mod get;
}
mod cursor;
mod domain {
    mod get;
}
mod domains;
mod email;
mod inbox {
    mod delete;
    mod get;
}
mod me {
    mod get;
}
mod owner;
mod sse;
mod tokens;
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
