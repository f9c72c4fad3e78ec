//! Sends mail and reads inboxes.

use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{App, SYSTEM_DOMAIN};
use crate::http::{Request, Response, percent};
use crate::smtp::{Reply, message, send_mail};
use crate::wait::eventually;

impl App {
    /// The emails of an inbox for a token, newest first. The inbox must not be empty, or the request waits.
    pub async fn emails_as(&self, live: &str, address: &str) -> Vec<Value> {
        let answer = self.get_as(live, &format!("/v1/inbox/{}?limit=50", percent(address))).await;
        answer.expect(200)["emails"].as_array().expect("emails is a list").clone()
    }

    /// As [`Self::emails`], once reads work again after Postgres was unavailable.
    pub async fn emails_once_readable(&self, address: &str) -> Vec<Value> {
        let path = format!("/v1/inbox/{}?limit=50", percent(address));
        let answer = eventually("reads work again", || async {
            let answer = self.get(&path).await;
            (answer.status != 503).then_some(answer)
        });
        answer.await.expect(200)["emails"].as_array().expect("emails is a list").clone()
    }

    /// As [`Self::emails_as`], with the tenant's token.
    pub async fn emails(&self, address: &str) -> Vec<Value> {
        self.emails_as(&self.tenant.live, address).await
    }

    /// Asserts that an inbox is empty for a token: a mail that is sent now is the only one in it.
    ///
    /// # Panics
    /// There are other mails.
    pub async fn assert_inbox_is_empty_for(&self, live: &str, address: &str) {
        self.deliver(address, "the only mail", "").await;
        let emails = self.emails_as(live, address).await;
        let subjects: Vec<&str> = emails.iter().filter_map(|email| email["subject"].as_str()).collect();
        assert_eq!(subjects, ["the only mail"]);
        let id = emails[0]["id"].as_str().expect("an id is a text");
        let deleted = self.request(Method::DELETE, &format!("/v1/email/{id}")).live(live).send().await;
        assert_eq!(deleted.status, 204);
    }

    /// Asserts that an inbox is empty for the tenant.
    pub async fn assert_inbox_is_empty(&self, address: &str) {
        self.assert_inbox_is_empty_for(&self.tenant.live, address).await;
    }

    /// Starts a long-poll, and returns once the server holds it, which uses the only wait slot of the
    /// token. `live` must have no other wait.
    ///
    /// # Panics
    /// It returns at once.
    pub async fn start_long_poll(&self, live: &str, path: &str) -> JoinHandle<Response> {
        self.start_wait(live, || self.request(Method::GET, path)).await
    }

    /// As [`Self::start_long_poll`], `POST /v1/wait` with this body.
    ///
    /// # Panics
    /// It returns at once.
    pub async fn start_mail_wait(&self, live: &str, body: &Value) -> JoinHandle<Response> {
        self.start_wait(live, || self.request(Method::POST, "/v1/wait").json(body)).await
    }

    /// The answer to `POST /v1/wait` with this body.
    pub async fn wait_for_email(&self, live: &str, body: &Value) -> Response {
        self.request(Method::POST, "/v1/wait").live(live).json(body).send().await
    }

    /// A cursor of now.
    ///
    /// # Panics
    /// The server gives none.
    pub async fn cursor_as(&self, live: &str) -> String {
        let now = serde_json::json!({ "all": true, "after": "2200-01-01T00:00:00Z", "timeout": 0 });
        let none = self.wait_for_email(live, &now).await;
        assert_eq!(none.status, 204, "{}", none.text());
        none.header("x-next-since").to_owned()
    }

    async fn start_wait(&self, live: &str, wait: impl Fn() -> Request) -> JoinHandle<Response> {
        // This inbox has mail, so a request for it returns at once and frees the wait slot.
        let probe = format!("/v1/inbox/probe@{SYSTEM_DOMAIN}");
        self.deliver(&format!("probe@{SYSTEM_DOMAIN}"), "probe", "").await;
        loop {
            let blocked = tokio::spawn(wait().live(live).send());
            loop {
                let busy = self.get_as(live, &probe).await;
                if busy.status == 429 {
                    busy.assert_v1_error(429, "token_busy");
                    return blocked;
                }
                assert_eq!(busy.status, 200, "{}", busy.text());
                if blocked.is_finished() {
                    break;
                }
            }
            let answer = blocked.await.expect("a request does not panic");
            assert_eq!(answer.status, 429, "{}", answer.text());
        }
    }

    /// Sends a mail.
    ///
    /// # Panics
    /// It is not accepted.
    pub async fn deliver(&self, recipient: &str, subject: &str, body: &str) -> Reply {
        let message = message("Ada <ada@client.example>", subject, body);
        let reply = send_mail(self.smtp(), "ada@client.example", recipient, &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
        reply
    }
}
