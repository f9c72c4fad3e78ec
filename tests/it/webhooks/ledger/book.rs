//! What must be true between what was accepted, what was received and what was recorded.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use tempmail_tests::Fleet;
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use uuid::Uuid;

use super::{Line, all_is_told};
use crate::realtime::senders::Accepted;

/// What was counted.
#[derive(Debug, Default)]
pub struct Sums {
    /// Mails with their `250`.
    pub accepted: usize,
    /// Messages that are stored: a mail that lost its `250` is there once more.
    pub stored: usize,
    /// Requests that came.
    pub requests: usize,
    /// Receipts of an event after its first.
    pub duplicates: usize,
}

/// Waits until all is told, and compares everything but the number of duplicates.
///
/// `accepted` is all that was sent: senders end only with a `250`.
pub async fn balance(fleet: &Fleet, lines: &[Line], accepted: &[Accepted]) -> Sums {
    all_is_told(fleet).await;
    let mut sums = Sums { accepted: accepted.len(), ..Sums::default() };
    for line in lines {
        let sent = accepted.iter().map(|accepted| &accepted.mail);
        let sent = sent.filter(|mail| mail.recipient == line.address).map(|mail| &*mail.subject).collect();
        line.balances(fleet, &sent, &mut sums).await;
    }
    sums
}

impl Line {
    async fn balances(&self, fleet: &Fleet, sent: &HashSet<&str>, sums: &mut Sums) {
        let of = &self.address;
        assert!(!sent.is_empty(), "nothing was sent to {of}");
        let stored = stored(fleet, of).await;
        let subjects: HashSet<&str> = stored.values().map(|subject| &**subject).collect();
        for subject in sent {
            assert!(subjects.contains(subject), "`{subject}` has its 250 and is not stored");
        }
        let received = self.receiver.requests();
        let events = self.events(&received, &stored);
        for subject in events.keys().map(|message| &*stored[message]) {
            assert!(sent.contains(subject), "`{subject}` was told to {of} and never sent");
        }
        let recorded = recorded(fleet, self.webhook.id).await;
        for (message, subject) in &stored {
            let event = events.get(message);
            let event = event.unwrap_or_else(|| panic!("`{subject}` of {of} was told to nobody"));
            let receipts = event.requests.iter().filter(|request| is_success(request)).count();
            assert_ne!(receipts, 0, "`{subject}` of {of} has no receipt");
            assert_eq!(recorded.get(&event.id), Some(&1), "successes recorded of `{subject}` of {of}");
            sums.duplicates += receipts - 1;
        }
        assert_eq!(recorded.len(), stored.len(), "events of {of}");
        let listed = self.listed(fleet).await;
        let state = (&listed["status"], &listed["failure_count"]);
        assert_eq!(state, (&json!("active"), &json!(0)), "{of}");
        sums.stored += stored.len();
        sums.requests += received.len();
    }

    /// The requests by their message, after a look at each of them.
    fn events<'a>(
        &self,
        received: &'a [ReceivedRequest],
        stored: &HashMap<Uuid, String>,
    ) -> HashMap<Uuid, Event<'a>> {
        let mut events: HashMap<Uuid, Event<'a>> = HashMap::new();
        for request in received {
            let body = request.event();
            let (id, data) = (body["id"].as_str().unwrap(), &body["data"]);
            assert!(
                request.is_signed_by(&self.webhook.secret),
                "a wrong signature at {}: {id}",
                self.address
            );
            assert_eq!(request.header("x-webhook-id"), id);
            let message = data["email_id"].as_str().unwrap().parse().unwrap();
            let subject = stored.get(&message);
            let told = (data["address"].as_str(), data["subject"].as_str());
            assert!(subject.is_some(), "{told:?} was told to {} and is not stored", self.address);
            assert_eq!(told, (Some(&*self.address), subject.map(|subject| &**subject)));
            let event =
                events.entry(message).or_insert_with(|| Event { id: id.to_owned(), requests: Vec::new() });
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

/// An event, with all requests that told of it.
struct Event<'a> {
    id: String,
    requests: Vec<&'a ReceivedRequest>,
}

/// Whether a request was answered with 2xx.
fn is_success(request: &ReceivedRequest) -> bool {
    matches!(request.reaction, Reaction::Status(200..=299) | Reaction::DelayedStatus(_, 200..=299))
}

/// Messages to an address, with their subjects.
async fn stored(fleet: &Fleet, address: &str) -> HashMap<Uuid, String> {
    let rows = sqlx::query_as("SELECT id, subject FROM message WHERE address = $1");
    let rows: Vec<(Uuid, String)> = rows.bind(address).fetch_all(&fleet.pool).await.unwrap();
    rows.into_iter().collect()
}

/// How often each event was recorded as delivered.
async fn recorded(fleet: &Fleet, webhook: Uuid) -> HashMap<String, i64> {
    let rows = sqlx::query_as(
        "SELECT event_id, count(*) FROM webhook_delivery WHERE webhook = $1 AND error IS NULL GROUP BY 1",
    );
    let rows: Vec<(String, i64)> = rows.bind(webhook).fetch_all(&fleet.pool).await.unwrap();
    rows.into_iter().collect()
}
