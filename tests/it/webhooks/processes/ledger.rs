//! Compares what was accepted, what receivers got, and what was recorded.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use tempmail_tests::Fleet;
use tempmail_tests::load::senders::SentMail;
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use uuid::Uuid;

use super::{MailboxWebhook, wait_until_delivered};

/// Totals over all webhooks.
#[derive(Debug, Default)]
pub struct Totals {
    /// Mails that were accepted with `250`.
    pub accepted: usize,
    /// Stored messages: a mail whose `250` was lost is stored twice.
    pub stored: usize,
    /// Requests to receivers.
    pub requests: usize,
    /// Successful requests for an event after the first one.
    pub duplicates: usize,
}

/// Waits until everything is delivered, and asserts that each accepted mail was delivered and recorded; the
/// number of duplicates is the caller's to judge. `accepted` is everything that was sent.
pub async fn assert_all_delivered(
    fleet: &Fleet,
    webhooks: &[MailboxWebhook],
    accepted: &[SentMail],
) -> Totals {
    wait_until_delivered(fleet).await;
    let mut totals = Totals { accepted: accepted.len(), ..Totals::default() };
    for webhook in webhooks {
        let sent = accepted.iter().map(|accepted| &accepted.mail);
        let sent = sent.filter(|mail| mail.recipient == webhook.address).map(|mail| &*mail.subject).collect();
        webhook.assert_delivered(fleet, &sent, &mut totals).await;
    }
    totals
}

impl MailboxWebhook {
    async fn assert_delivered(&self, fleet: &Fleet, sent: &HashSet<&str>, totals: &mut Totals) {
        let address = &self.address;
        assert!(!sent.is_empty(), "nothing was sent to {address}");
        let stored = stored_messages(fleet, address).await;
        let subjects: HashSet<&str> = stored.values().map(|subject| &**subject).collect();
        for subject in sent {
            assert!(subjects.contains(subject), "`{subject}` was accepted and is not stored");
        }
        let requests = self.receiver.requests();
        let events = self.requests_by_message(&requests, &stored);
        for subject in events.keys().map(|message| &*stored[message]) {
            assert!(sent.contains(subject), "`{subject}` was delivered for {address} and never sent");
        }
        let recorded = recorded_successes(fleet, self.webhook.id).await;
        for (message, subject) in &stored {
            let event = events.get(message);
            let event = event.unwrap_or_else(|| panic!("`{subject}` for {address} was not delivered"));
            let successes = event.requests.iter().filter(|request| is_success(request)).count();
            assert_ne!(successes, 0, "`{subject}` for {address} was not delivered");
            assert_eq!(recorded.get(&event.id), Some(&1), "recorded successes of `{subject}` for {address}");
            totals.duplicates += successes - 1;
        }
        assert_eq!(recorded.len(), stored.len(), "events for {address}");
        let listed = self.get(fleet).await;
        let state = (&listed["status"], &listed["failure_count"]);
        assert_eq!(state, (&json!("active"), &json!(0)), "{address}");
        totals.stored += stored.len();
        totals.requests += requests.len();
    }

    /// The requests by their message, each of which is checked.
    fn requests_by_message<'a>(
        &self,
        requests: &'a [ReceivedRequest],
        stored: &HashMap<Uuid, String>,
    ) -> HashMap<Uuid, EventRequests<'a>> {
        let mut events: HashMap<Uuid, EventRequests<'a>> = HashMap::new();
        for request in requests {
            let body = request.event();
            let (id, data) = (body["id"].as_str().unwrap(), &body["data"]);
            assert!(
                request.is_signed_by(&self.webhook.secret),
                "invalid signature for {}: {id}",
                self.address
            );
            assert_eq!(request.header("x-webhook-id"), id);
            let message = data["email_id"].as_str().unwrap().parse().unwrap();
            let subject = stored.get(&message);
            let delivered = (data["address"].as_str(), data["subject"].as_str());
            assert!(subject.is_some(), "{delivered:?} was delivered for {} and is not stored", self.address);
            assert_eq!(delivered, (Some(&*self.address), subject.map(|subject| &**subject)));
            let event = events
                .entry(message)
                .or_insert_with(|| EventRequests { id: id.to_owned(), requests: Vec::new() });
            assert_eq!(event.id, id, "a message has one event");
            if let Some(first) = event.requests.first() {
                assert_eq!(first.body, request.body, "another body of {id}");
            }
            event.requests.push(request);
        }
        let ids: HashSet<&str> = events.values().map(|event| &*event.id).collect();
        assert_eq!(ids.len(), events.len(), "an event has one message");
        events
    }
}

/// An event, with all of its requests.
struct EventRequests<'a> {
    id: String,
    requests: Vec<&'a ReceivedRequest>,
}

/// Whether the response to a request was 2xx.
fn is_success(request: &ReceivedRequest) -> bool {
    matches!(request.reaction, Reaction::Status(200..=299) | Reaction::DelayedStatus(_, 200..=299))
}

/// Messages to an address, with their subjects.
async fn stored_messages(fleet: &Fleet, address: &str) -> HashMap<Uuid, String> {
    let rows = sqlx::query_as("SELECT id, subject FROM message WHERE address = $1");
    let rows: Vec<(Uuid, String)> = rows.bind(address).fetch_all(&fleet.pool).await.unwrap();
    rows.into_iter().collect()
}

/// How often each event was recorded as delivered.
async fn recorded_successes(fleet: &Fleet, webhook: Uuid) -> HashMap<String, i64> {
    let rows = sqlx::query_as(
        "SELECT event_id, count(*) FROM webhook_delivery WHERE webhook = $1 AND error IS NULL GROUP BY 1",
    );
    let rows: Vec<(String, i64)> = rows.bind(webhook).fetch_all(&fleet.pool).await.unwrap();
    rows.into_iter().collect()
}
