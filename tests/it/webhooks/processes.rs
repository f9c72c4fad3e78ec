//! Workers as processes: they die, stop and drain, and no event is lost. Those that were in flight may be
//! sent twice.

mod chaos;
mod crash;
mod drain;
mod ledger;
mod order;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::rows::count_pending_events;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Receiver, Tenant};

use super::CreatedWebhook;
use crate::pro_api::id_of;

/// A mailbox of a tenant, the tenant's webhook, and its receiver.
pub(crate) struct MailboxWebhook {
    pub(crate) address: String,
    pro: String,
    webhook: CreatedWebhook,
    pub(crate) receiver: Receiver,
}

impl MailboxWebhook {
    pub(crate) async fn create(fleet: &Fleet, tenant: &Tenant, address: &str) -> Self {
        let receiver = Receiver::start().await;
        fleet.mailbox(Some(&tenant.pro), address).await;
        let body = json!({ "url": receiver.url(), "events": ["email.received"] });
        let request = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&tenant.pro).json(&body);
        let created = request.send().await.expect(201);
        let secret = created["secret"].as_str().expect("a secret").to_owned();
        let webhook = CreatedWebhook { id: id_of(&created), secret };
        Self { address: address.to_owned(), pro: tenant.pro.clone(), webhook, receiver }
    }

    /// The webhook, as it is listed.
    async fn get(&self, fleet: &Fleet) -> Value {
        let request = fleet.request(0, Method::GET, "/pro/api/webhooks").bearer(&self.pro);
        request.send().await.expect(200)["webhooks"][0].clone()
    }

    /// The listed attempts, newest first: number, status and error of each.
    async fn attempts(&self, fleet: &Fleet) -> Vec<(i64, i64, Option<String>)> {
        let path = format!("/pro/api/webhooks/{}/deliveries", self.webhook.id);
        let listed = fleet.request(0, Method::GET, &path).bearer(&self.pro);
        // The API server may still have connections to a Postgres that was restarted.
        let listed = listed.send_until_available().await.expect(200);
        let attempt = |attempt: &Value| {
            let number = |key: &str| attempt[key].as_i64().expect("a number");
            (number("attempt"), number("status_code"), attempt["error"].as_str().map(str::to_owned))
        };
        listed["deliveries"].as_array().expect("a list").iter().map(attempt).collect()
    }
}

/// Processes with this number of workers, and one webhook.
async fn fleet_with_webhook(workers: usize) -> (Fleet, MailboxWebhook) {
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).workers(workers).start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    (fleet, webhook)
}

/// Waits until no event is pending.
pub(crate) async fn wait_until_delivered(fleet: &Fleet) {
    eventually("no event is pending", || async {
        (count_pending_events(&fleet.pool).await == 0).then_some(())
    })
    .await;
}

/// The one of two workers that has a request in flight, and the other.
async fn busy_and_idle_worker(fleet: &Fleet) -> (&RoleProcess, &RoleProcess) {
    let (one, other) = (fleet.worker(0), fleet.worker(1));
    eventually("a request is in flight", || async {
        for (busy, idle) in [(one, other), (other, one)] {
            if busy.metric("tempmail_webhook_requests_in_flight").await > 0.0 {
                return Some((busy, idle));
            }
        }
        None
    })
    .await
}
