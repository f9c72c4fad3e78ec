//! The ledger: a sender writes down each `250`, a receiver each event that it verified. Whatever dies,
//! no accepted mail is without a receipt, and no more are told twice than were in flight when it died.

mod book;
mod drain;
mod flow;
mod interrupted;
mod order;
mod seeded;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Receiver, Tenant};

use super::Webhook;
use crate::pro_api::id_of;

/// A tenant with one mailbox, and a webhook that tells of its mail.
struct Line {
    address: String,
    pro: String,
    webhook: Webhook,
    receiver: Receiver,
}

impl Line {
    async fn of(fleet: &Fleet, tenant: &Tenant, address: &str) -> Self {
        let receiver = Receiver::start().await;
        fleet.mailbox(Some(&tenant.pro), address).await;
        let body = json!({ "url": receiver.url(), "events": ["email.received"] });
        let request = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&tenant.pro).json(&body);
        let made = request.send().await.expect(201);
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        let webhook = Webhook { id: id_of(&made), secret };
        Self { address: address.to_owned(), pro: tenant.pro.clone(), webhook, receiver }
    }

    /// The webhook, as it is listed.
    async fn listed(&self, fleet: &Fleet) -> Value {
        let request = fleet.request(0, Method::GET, "/pro/api/webhooks").bearer(&self.pro);
        request.send().await.expect(200)["webhooks"][0].clone()
    }

    /// The attempts that are listed, newest first: number, status and error of each.
    async fn attempts(&self, fleet: &Fleet) -> Vec<(i64, i64, Option<String>)> {
        let path = format!("/pro/api/webhooks/{}/deliveries", self.webhook.id);
        let listed = fleet.request(0, Method::GET, &path).bearer(&self.pro).send().await.expect(200);
        let of = |one: &Value| {
            let number = |key: &str| one[key].as_i64().expect("a number");
            (number("attempt"), number("status_code"), one["error"].as_str().map(str::to_owned))
        };
        listed["deliveries"].as_array().expect("a list").iter().map(of).collect()
    }
}

/// Processes of which so many work, with one line.
async fn with_line(workers: usize) -> (Fleet, Line) {
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).workers(workers).start().await;
    let line = Line::of(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    (fleet, line)
}

/// Returns when nothing waits for any webhook.
async fn all_is_told(fleet: &Fleet) {
    eventually("all is told", || async {
        let waiting: i64 =
            sqlx::query_scalar("SELECT count(*) FROM webhook_event").fetch_one(&fleet.pool).await.unwrap();
        (waiting == 0).then_some(())
    })
    .await;
}

/// The one of two workers that has a request under way, and the other.
async fn at_work(fleet: &Fleet) -> (&RoleProcess, &RoleProcess) {
    let (one, other) = (fleet.worker(0), fleet.worker(1));
    eventually("a request is under way", || async {
        for (busy, idle) in [(one, other), (other, one)] {
            if busy.metric("tempmail_webhook_requests_in_flight").await > 0.0 {
                return Some((busy, idle));
            }
        }
        None
    })
    .await
}
