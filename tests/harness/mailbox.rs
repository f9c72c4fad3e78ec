//! Mailboxes, made as their owners make them.

use serde_json::json;
use uuid::Uuid;

use crate::http::{Answer, Request};

/// The password of the mailboxes that tests make.
pub(crate) const PASSWORD: &str = "correct horse";

/// A mailbox as its creation answered it.
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
    /// What a creation with the tests' password made.
    ///
    /// # Panics
    /// It was refused.
    pub(crate) fn of(answer: &Answer) -> Self {
        let created = answer.expect(201);
        let text = |key: &str| created[key].as_str().expect("the creation answers a text").to_owned();
        let id = text("id").parse().expect("an id is a UUID");
        Self { id, address: text("address"), password: PASSWORD.to_owned(), jwt: text("token") }
    }
}

/// Sends the creation of a mailbox, with a Pro token or without; `request` is `POST` of
/// `/api/accounts`.
pub(crate) async fn create(request: Request, pro: Option<&str>, address: &str, password: &str) -> Answer {
    let request = match pro {
        Some(token) => request.bearer(token),
        None => request,
    };
    request.json(&json!({ "address": address, "password": password })).send().await
}
