//! An outage of Postgres. Conditions that were written stay as they are; an object that is new says why nothing happens.

use kube::ResourceExt as _;

use super::context::Context;
use super::driver::is_paused;
use crate::error::ReconcileError;
use crate::kind::Kind;

/// Reason of the conditions that the API server gives to an object when it is created.
const PENDING: &str = "Pending";

/// Says in the conditions of an object that no reconciliation has written, and in an event, that Postgres is unavailable.
pub(crate) async fn report<K: Kind>(object: &K, context: &Context) {
    if !is_new(object) || is_paused(object) || object.meta().deletion_timestamp.is_some() {
        return;
    }
    match context.status.report_unavailable(object).await {
        Ok(()) | Err(ReconcileError::Stale) => {}
        Err(error) => {
            let (kind, namespace, name) = (K::KIND.as_str(), object.namespace(), object.name_any());
            tracing::warn!(kind, namespace, name, %error, "a status can't report the outage of Postgres");
        }
    }
}

/// Whether the object has no conditions but those of its creation.
fn is_new<K: Kind>(object: &K) -> bool {
    let conditions = object.status().map(K::conditions).unwrap_or_default();
    conditions.iter().all(|condition| condition.reason == PENDING)
}
