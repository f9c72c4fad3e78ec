//! Mailboxes, their credentials, and sessions of Pro tokens.

use reqwest::Method;
use serde_json::{Value, json};

use super::App;
use crate::http::Response;
use crate::mailbox::{Mailbox, PASSWORD};

impl App {
    /// Tries to create a mailbox, with a Pro token or without.
    pub async fn create_mailbox(&self, pro: Option<&str>, address: &str, password: &str) -> Response {
        crate::mailbox::create(self.request(Method::POST, "/api/accounts"), pro, address, password).await
    }

    /// A new mailbox.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn mailbox(&self, pro: Option<&str>, address: &str) -> Mailbox {
        Mailbox::from_response(&self.create_mailbox(pro, address, PASSWORD).await)
    }

    /// A `GET` with a mailbox JWT.
    pub async fn get_mailbox(&self, mailbox: &Mailbox, path: &str) -> Response {
        self.request(Method::GET, path).bearer(&mailbox.jwt).send().await
    }

    /// The first page of a mailbox, newest first.
    pub async fn messages(&self, mailbox: &Mailbox) -> Vec<Value> {
        let answer = self.get_mailbox(mailbox, "/api/messages").await.expect(200);
        answer["messages"].as_array().expect("messages is a list").clone()
    }

    /// Tries to sign in to a mailbox.
    pub async fn sign_in(&self, address: &str, password: &str) -> Response {
        let body = json!({ "address": address, "password": password });
        self.request(Method::POST, "/api/token").json(&body).send().await
    }

    /// Deletes a mailbox, as its owner does.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn delete_mailbox(&self, mailbox: &Mailbox) {
        let deleted = self.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
    }

    /// A new session of a Pro token.
    ///
    /// # Panics
    /// The token is refused.
    pub async fn session(&self, pro: &str) -> String {
        let request = self.request(Method::POST, "/pro/api/session").json(&json!({ "token": pro }));
        request.send().await.expect(200)["token"].as_str().expect("a token is a text").to_owned()
    }
}
