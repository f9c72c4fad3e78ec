//! Reading objects as tests got them from the API server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// The condition of a type, of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

fn text<'a>(object: &'a Value, kind: &str, field: &str) -> &'a str {
    let text = condition(object, kind).and_then(|condition| condition[field].as_str());
    text.unwrap_or_else(|| panic!("no condition {kind} in {object:#}"))
}

/// Status of a condition: `True`, `False` or `Unknown`.
///
/// # Panics
/// The object has no such condition.
pub fn condition_status<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(object, kind, "status")
}

/// Reason of a condition.
///
/// # Panics
/// The object has no such condition.
pub fn condition_reason<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(object, kind, "reason")
}

/// Message of a condition.
///
/// # Panics
/// The object has no such condition.
pub fn condition_message<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(object, kind, "message")
}

/// Asserts that conditions have these statuses.
///
/// # Panics
/// One has another, or is missing.
pub fn assert_conditions(object: &Value, expected: &[(&str, &str)]) {
    for (kind, status) in expected {
        assert_eq!(condition_status(object, kind), *status, "{kind} of {object:#}");
    }
}

/// The token and the MX host that a CustomDomain wants in the DNS.
///
/// # Panics
/// The object does not show its records.
pub fn verification_records(object: &Value) -> (String, String) {
    let records = &object["status"]["verification"]["records"];
    let token = records[0]["value"].as_str().and_then(|value| value.strip_prefix("tempmail-verify="));
    let mx_host = records[1]["value"].as_str();
    token.zip(mx_host).map_or_else(
        || panic!("no records in {object:#}"),
        |(token, mx_host)| (token.to_owned(), mx_host.to_owned()),
    )
}

/// The value of a key in a Secret, where it has one.
///
/// # Panics
/// The value is not text.
pub fn secret_value(secret: &Value, key: &str) -> Option<String> {
    let value = BASE64_STANDARD.decode(secret["data"][key].as_str()?).expect("it is Base64");
    Some(String::from_utf8(value).expect("it is text"))
}
