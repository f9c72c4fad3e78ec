//! `POST /v1/wait`: waits for one mail that matches.

mod bounds;
mod contents;
mod post;
mod rights;
mod start;

use serde_json::{Value, json};
use tempmail_tests::{App, Response};

const ADDRESS: &str = "ship@inbox.localhost";

/// A wait on [`ADDRESS`] with further fields.
fn on_address(fields: &Value) -> Value {
    let mut body = json!({ "address": ADDRESS });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// The answer to a look at [`ADDRESS`] that does not wait.
async fn look(app: &App, fields: &Value) -> Response {
    let mut body = on_address(fields);
    body["timeout"] = json!(0);
    app.wait_for_email(&app.tenant.live, &body).await
}

/// The subject of a mail that was found.
fn subject(answer: &Value) -> &str {
    answer["email"]["subject"].as_str().expect("the mail has a subject")
}
