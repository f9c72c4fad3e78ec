//! Events about objects.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use super::message::Message;
use super::reason::Reason;
use crate::kind::Kind;

/// Reporting controller of the events.
const CONTROLLER: &str = "tempmail.dev/operator";

/// Publishes events. One that can't be published is logged only: the status has the same information.
#[derive(Clone)]
pub(crate) struct EventPublisher {
    client: Client,
    reporter: Reporter,
}

impl EventPublisher {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, reporter: Reporter { controller: CONTROLLER.to_owned(), instance: None } }
    }

    /// Publishes an operation on an object.
    pub(crate) async fn publish<K: Kind>(&self, object: &K, message: &Message) {
        self.publish_change(&object.object_ref(&()), message.reason, &message.text).await;
    }

    /// Publishes a condition that changed.
    pub(super) async fn publish_change(&self, about: &ObjectReference, reason: Reason, message: &str) {
        let event = Event {
            type_: if reason.is_warning() { EventType::Warning } else { EventType::Normal },
            reason: reason.as_str().to_owned(),
            note: Some(message.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // A shared recorder caches the events of some minutes and scans them for each new one.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, about).await {
            tracing::warn!(reason = reason.as_str(), %error, "an event was not published");
        }
    }
}
