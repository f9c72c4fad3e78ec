//! What clients of an installation see of a tenant: answers to tokens, passwords and mail.

use reqwest::Method;
use serde_json::json;

use super::installation::Installation;
use crate::http::Response;
use crate::mailbox;
use crate::smtp::{message, send_mail};
use crate::wait::eventually;

impl<C> Installation<C> {
    /// Status of the answer of `/v1` to a live token.
    pub async fn live_token_status(&self, live: &str) -> u16 {
        self.request(Method::GET, "/v1/tokens").live(live).send().await.status
    }

    /// Waits until `/v1` accepts a live token.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_until_token_accepted(&self, live: &str) {
        eventually("the token is accepted", || async {
            (self.live_token_status(live).await == 200).then_some(())
        })
        .await;
    }

    /// Waits until `/v1` rejects a live token.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_until_token_rejected(&self, live: &str) {
        eventually("the token is rejected", || async {
            (self.live_token_status(live).await == 401).then_some(())
        })
        .await;
    }

    /// The answer to a `GET` with a Pro token.
    pub async fn get_as_pro(&self, pro: &str, path: &str) -> Response {
        self.request(Method::GET, path).bearer(pro).send().await
    }

    /// The answer to a sign-in to a mailbox.
    pub async fn sign_in(&self, address: &str, password: &str) -> Response {
        let credentials = json!({"address": address, "password": password});
        self.request(Method::POST, "/api/token").json(&credentials).send().await
    }

    /// Tries to create a mailbox, with a Pro token or without.
    pub async fn create_mailbox(&self, pro: Option<&str>, address: &str, password: &str) -> Response {
        mailbox::create(self.request(Method::POST, "/api/accounts"), pro, address, password).await
    }

    /// Sends a mail to an address, and returns the code of the last reply.
    pub async fn send_mail_to(&self, recipient: &str) -> u16 {
        let message = message("Ada <ada@client.example>", "a mail", "");
        send_mail(self.app.smtp(), "ada@client.example", recipient, &message).await.code
    }

    /// Sends mails to an address until one is answered with this code.
    ///
    /// # Panics
    /// None ever is.
    pub async fn wait_for_mail_reply(&self, recipient: &str, code: u16) {
        eventually(&format!("a mail to {recipient} is answered with {code}"), || async {
            (self.send_mail_to(recipient).await == code).then_some(())
        })
        .await;
    }
}
