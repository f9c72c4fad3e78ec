//! Mailboxes, created over HTTP.

use serde_json::json;
use uuid::Uuid;

use crate::http::{Request, Response};

/// The password of all mailboxes of the tests.
pub(crate) const PASSWORD: &str = "correct horse";

/// A mailbox as its creation returned it.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// Its id.
    pub id: Uuid,
    /// Its address.
    pub address: String,
    /// Its password.
    pub password: String,
    /// Its JWT.
    pub jwt: String,
}

impl Mailbox {
    /// From the response to a creation with [`PASSWORD`].
    ///
    /// # Panics
    /// The creation was rejected.
    pub(crate) fn from_response(response: &Response) -> Self {
        let created = response.expect(201);
        let text = |key: &str| created[key].as_str().expect("the creation returns a text").to_owned();
        let id = text("id").parse().expect("an id is a UUID");
        Self { id, address: text("address"), password: PASSWORD.to_owned(), jwt: text("token") }
    }
}

/// Creates a mailbox, with or without a Pro token; `request` is `POST /api/accounts`.
pub(crate) async fn create(request: Request, pro: Option<&str>, address: &str, password: &str) -> Response {
    let request = match pro {
        Some(token) => request.bearer(token),
        None => request,
    };
    request.json(&json!({ "address": address, "password": password })).send().await
}
