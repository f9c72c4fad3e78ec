//! `/v1`

mod config;
mod deletion;
mod domains;
mod email;
mod emails;
mod inbox;
mod owned;
mod owner;
mod sse;
mod tokens;
mod wait;

use serde_json::Value;

/// The subjects of a list of summaries.
fn subjects(emails: &Value) -> Vec<&str> {
    emails
        .as_array()
        .expect("a list")
        .iter()
        .map(|email| email["subject"].as_str().expect("a text"))
        .collect()
}
