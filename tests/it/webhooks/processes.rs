//! Workers as processes: they die, stop and drain, and no event is lost. Those that were in flight may be
//! sent twice.

mod chaos;
mod ledger;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{count_leased_webhooks, count_pending_events, expire_webhook_leases};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Receiver, RedisProxy, RedisServer, SmtpClient, Tenant, smtp};
use uuid::Uuid;

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

/// One worker that has got a response while Postgres was unavailable.
pub(super) async fn fleet_with_unrecorded_attempt() -> (Fleet, MailboxWebhook, DedicatedPostgres) {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).database(postgres.database().await);
    let fleet = fleet.start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(204)]);
    fleet.deliver(0, &webhook.address, "unrecorded").await;
    webhook.receiver.wait_for_requests(1).await;
    postgres.stop(StopMode::Kill).await;
    webhook.receiver.release_held();
    eventually("the response is read", || async {
        (fleet.worker(0).metric("tempmail_webhook_attempts_total").await > 0.0).then_some(())
    })
    .await;
    (fleet, webhook, postgres)
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_what_a_killed_worker_did_not_record_again_with_the_same_id() {
    let (fleet, webhook, postgres) = fleet_with_unrecorded_attempt().await;
    fleet.worker(0).kill().await;
    postgres.ensure_started().await;
    expire_webhook_leases(&fleet.pool).await;
    fleet.worker(0).restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].header("x-webhook-id"), requests[1].header("x-webhook-id"));
    assert!(requests.iter().all(|request| request.is_signed_by(&webhook.webhook.secret)));
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_worker_records_nothing_after_its_lease_has_expired() {
    let (fleet, webhook) = fleet_with_webhook(2).await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(500)]);
    fleet.deliver(0, &webhook.address, "twice").await;
    webhook.receiver.wait_for_requests(1).await;
    let (suspended, other) = busy_and_idle_worker(&fleet).await;
    suspended.signal(Signal::SIGSTOP);
    expire_webhook_leases(&fleet.pool).await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    assert_eq!(requests[0].body, requests[1].body);
    wait_until_delivered(&fleet).await;
    eventually("the other worker counts one attempt", || async {
        (other.metric("tempmail_webhook_attempts_total").await == 1.0).then_some(())
    })
    .await;
    webhook.receiver.release_held();
    suspended.signal(Signal::SIGCONT);
    eventually("the worker has left the lane", || async {
        let done = suspended.metric("tempmail_webhook_attempts_total").await > 0.0
            && suspended.metric("tempmail_webhooks_claimed").await == 0.0;
        done.then_some(())
    })
    .await;
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
    let listed = webhook.get(&fleet).await;
    assert_eq!((&listed["status"], &listed["failure_count"]), (&json!("active"), &json!(0)));
    fleet.deliver(0, &webhook.address, "next").await;
    webhook.receiver.wait_for_requests(3).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_the_request_in_flight_and_releases_the_rest() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(204)]);
    fleet.deliver(0, &webhook.address, "in flight").await;
    webhook.receiver.wait_for_requests(1).await;
    let worker = fleet.worker(0);
    worker.signal(Signal::SIGTERM);
    eventually("the worker drains", || async { (!worker.is_ready().await).then_some(()) }).await;
    fleet.deliver(0, &webhook.address, "pending").await;
    webhook.receiver.release_held();
    let status = worker.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!(pending_and_leased(&fleet).await, (1, 0));
    assert_eq!(webhook.receiver.request_count(), 1);
    worker.restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[1].event()["data"]["subject"], "pending");
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_the_webhook_of_a_request_that_is_aborted() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    webhook.receiver.react_next_with([Reaction::Hang]);
    fleet.deliver(0, &webhook.address, "aborted").await;
    webhook.receiver.wait_for_requests(1).await;
    let worker = fleet.worker(0);
    worker.signal(Signal::SIGTERM);
    eventually("the worker drains", || async { (!worker.is_ready().await).then_some(()) }).await;
    worker.signal(Signal::SIGTERM);
    let status = worker.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!(pending_and_leased(&fleet).await, (1, 0));
    worker.restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
}

/// Pending events, and webhooks with a lease.
async fn pending_and_leased(fleet: &Fleet) -> (i64, i64) {
    (count_pending_events(&fleet.pool).await, count_leased_webhooks(&fleet.pool).await)
}

/// Requests to a webhook in flight at most: by so many places one may overtake another.
const IN_FLIGHT_MAX: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn sends_events_from_before_the_worker_started_in_the_order_of_the_stream() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    let status = fleet.worker(0).terminate().await.status;
    assert!(status.success(), "{status:?}");
    let mut client = SmtpClient::connect_with_ehlo(fleet.smtp(0)).await;
    for nth in 0..100 {
        let message = smtp::message("Ada <ada@client.example>", &format!("mail {nth}"), "");
        assert_eq!(client.transact("ada@client.example", &[&webhook.address], &message).await.code, 250);
    }
    assert_eq!(webhook.receiver.request_count(), 0);
    fleet.worker(0).restart().await;
    let stored = fleet.stored_message_ids(&webhook.address).await;
    let requests = webhook.receiver.wait_for_requests(stored.len()).await;
    wait_until_delivered(&fleet).await;
    let sent: Vec<Uuid> = requests
        .iter()
        .map(|request| request.event()["data"]["email_id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!((sent[0], sent.len()), (stored[0], 100));
    for (position, message) in stored.iter().enumerate() {
        let sent = sent.iter().position(|sent| sent == message).expect("each message is sent");
        assert!(sent + IN_FLIGHT_MAX > position, "message {position} was sent as number {sent}");
    }
    assert_eq!(webhook.receiver.request_count(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_while_redis_is_unavailable() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).redis(&proxy.url()).start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    fleet.deliver(0, &webhook.address, "with Redis").await;
    webhook.receiver.wait_for_requests(1).await;
    redis.stop();
    for nth in 2..5 {
        fleet.deliver(0, &webhook.address, "without Redis").await;
        webhook.receiver.wait_for_requests(nth).await;
    }
    redis.start();
    fleet.deliver(0, &webhook.address, "with Redis again").await;
    webhook.receiver.wait_for_requests(5).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.receiver.request_count(), 5);
}
