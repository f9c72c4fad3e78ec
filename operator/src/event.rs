//! Events about objects, when something changes.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};

use crate::context::Context;
use crate::kind::Kind;
use crate::standing::Reason;

impl Context {
    /// Tells of something that was done for an object.
    pub(crate) async fn tell<K: Kind>(&self, object: &K, reason: Reason) {
        self.publish(&object.object_ref(&()), reason, reason.message()).await;
    }

    /// Tells of a change; one that can't be told is logged, since the status tells it, too.
    pub(crate) async fn publish(&self, about: &ObjectReference, reason: Reason, message: &str) {
        let event = Event {
            type_: if reason.is_warning() { EventType::Warning } else { EventType::Normal },
            reason: reason.as_str().to_owned(),
            note: Some(message.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // One that is kept would remember all events of some minutes, and look through them at each.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, about).await {
            tracing::warn!(reason = reason.as_str(), %error, "an event was not published");
        }
    }
}
