//! Writes statuses where they changed, and publishes what changed as events.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tempmail_crds::{Condition, KindStatus};
use tempmail_model::clock::Clock;
use tempmail_store::{Epoch, Store};

use super::message::{self, Message};
use super::reason::Reason;
use super::update::{ConditionStatus, ConditionType, ConditionUpdate, StatusUpdate};
use crate::error::ReconcileError;
use crate::kind::Kind;

/// Field manager of statuses.
const FIELD_MANAGER: &str = "tempmail-operator/status";

/// Reporting controller of the events.
const CONTROLLER: &str = "tempmail.dev/operator";

/// Writes statuses, as long as this operator leads.
pub(crate) struct StatusWriter {
    pub client: Client,
    pub store: Store,
    pub epoch: Epoch,
    pub clock: Arc<dyn Clock>,
    pub events: EventPublisher,
}

impl StatusWriter {
    /// Updates the status of an object and publishes what changed as events. Returns whether the status
    /// was written: one that is up to date is not.
    pub(crate) async fn update<K: Kind>(
        &self,
        object: &K,
        update: StatusUpdate<K::Status>,
    ) -> Result<bool, ReconcileError> {
        let former = object.status();
        let written = former.map(|status| status.conditions().to_vec()).unwrap_or_default();
        let generation = object.meta().generation;
        let mut status = update.status;
        status.set_observed_generation(generation);
        *status.conditions_mut() = conditions(&written, &update.conditions, generation, self.clock.now());
        if former.map(owned_part).as_ref() == Some(&status) {
            metrics::counter!("tempmail_operator_status_patches_total", "outcome" => "skipped").increment(1);
            return Ok(false);
        }
        self.apply::<K, K>(&object.api(&self.client), object.meta(), &status).await?;
        for condition in changes(&written, &update.conditions) {
            let about = object.object_ref(&());
            self.events.publish_change(&about, condition.reason, &condition.message).await;
        }
        Ok(true)
    }

    /// Adds the condition `ReconciliationPaused`, and leaves the rest of the status as it is.
    pub(crate) async fn pause<K: Kind>(&self, object: &K) -> Result<(), ReconcileError> {
        let kind = ConditionType::ReconciliationPaused;
        let Some(status) = object.status() else { return Ok(()) };
        if status.conditions().iter().any(|condition| condition.type_ == kind.as_str()) {
            return Ok(());
        }
        let paused = ConditionUpdate::new(kind, ConditionStatus::True, message::paused());
        let mut status = owned_part(status);
        let added = conditions(&[], &[paused], object.meta().generation, self.clock.now());
        status.conditions_mut().extend(added);
        self.apply::<K, K>(&object.api(&self.client), object.meta(), &status).await
    }

    /// Says in the status of a new object, and in an event, that Postgres is unavailable. The epoch can't be checked without
    /// Postgres; the next reconciliation, of whichever leader, replaces what this writes.
    pub(crate) async fn report_unavailable<K: Kind>(&self, object: &K) -> Result<(), ReconcileError> {
        let message = message::postgres_unavailable();
        let updates = [
            ConditionUpdate::new(ConditionType::Ready, ConditionStatus::Unknown, message.clone()),
            ConditionUpdate::new(ConditionType::Accepted, ConditionStatus::Unknown, message.clone()),
            ConditionUpdate::new(ConditionType::Reconciling, ConditionStatus::True, message.clone()),
        ];
        let written = object.status().map(KindStatus::conditions).unwrap_or_default();
        let conditions = conditions(written, &updates, object.meta().generation, self.clock.now());
        // Without `observedGeneration`: no spec was observed.
        let status = json!({"conditions": conditions});
        Self::apply_unfenced::<K, K>(&object.api(&self.client), object.meta(), &status).await?;
        self.events.publish(object, &message).await;
        Ok(())
    }

    /// Replaces the status of an object of the kind `K` that may not be decodable as one by conditions.
    pub(crate) async fn replace_conditions<K, T>(
        &self,
        api: &Api<T>,
        metadata: &ObjectMeta,
        updates: &[ConditionUpdate],
    ) -> Result<(), ReconcileError>
    where
        K: Kind,
        T: Clone + Debug + DeserializeOwned,
    {
        let generation = metadata.generation;
        let conditions = conditions(&[], updates, generation, self.clock.now());
        let status = json!({"observedGeneration": generation, "conditions": conditions});
        self.apply::<K, T>(api, metadata, &status).await
    }

    /// Applies a status to the version of the object that was read.
    async fn apply<K, T>(
        &self,
        api: &Api<T>,
        metadata: &ObjectMeta,
        status: &impl Serialize,
    ) -> Result<(), ReconcileError>
    where
        K: Kind,
        T: Clone + Debug + DeserializeOwned,
    {
        // What a former leader read is out of date.
        self.store.check_epoch(self.epoch).await?;
        Self::apply_unfenced::<K, T>(api, metadata, status).await
    }

    /// Does what [`Self::apply`] does, even if another operator leads by now.
    async fn apply_unfenced<K, T>(
        api: &Api<T>,
        metadata: &ObjectMeta,
        status: &impl Serialize,
    ) -> Result<(), ReconcileError>
    where
        K: Kind,
        T: Clone + Debug + DeserializeOwned,
    {
        let name = metadata.name.as_deref().unwrap_or_default();
        let patch = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "status": status,
        });
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        api.patch_status(name, &parameters, &Patch::Apply(patch)).await?;
        metrics::counter!("tempmail_operator_status_patches_total", "outcome" => "written").increment(1);
        Ok(())
    }
}

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
    async fn publish_change(&self, about: &ObjectReference, reason: Reason, message: &str) {
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

/// The status without the conditions of other writers.
fn owned_part<S: KindStatus>(status: &S) -> S {
    let mut status = status.clone();
    let is_owned = |name: &str| ConditionType::ALL.iter().any(|kind| kind.as_str() == name);
    status.conditions_mut().retain(|condition| is_owned(&condition.type_));
    status
}

/// The conditions to write, in the order of [`ConditionType::ALL`]. `lastTransitionTime` changes only when
/// `status` does.
fn conditions(
    written: &[Condition],
    updates: &[ConditionUpdate],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    ConditionType::ALL
        .into_iter()
        .filter_map(|kind| updates.iter().find(|update| update.kind == kind))
        .map(|update| {
            let former = written.iter().find(|condition| condition.type_ == update.kind.as_str());
            let since = former
                .filter(|condition| condition.status == update.status.as_str())
                .map_or_else(|| Time(to_seconds(now)), |condition| condition.last_transition_time.clone());
            Condition {
                type_: update.kind.as_str().to_owned(),
                status: update.status.as_str().to_owned(),
                reason: update.reason.as_str().to_owned(),
                message: update.message.clone(),
                last_transition_time: since,
                observed_generation: generation,
            }
        })
        .collect()
}

/// Truncates to seconds, which is what Kubernetes stores: a finer time would differ when it is read back.
pub(crate) fn to_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The conditions that changed, one per reason, without the summaries (`Reconciling`, `Stalled`).
fn changes<'a>(written: &[Condition], updates: &'a [ConditionUpdate]) -> Vec<&'a ConditionUpdate> {
    let mut changes: Vec<&ConditionUpdate> = Vec::new();
    for update in updates {
        let is_summary = matches!(update.kind, ConditionType::Reconciling | ConditionType::Stalled);
        let is_repeated = changes.iter().any(|change| change.reason == update.reason);
        if !update.is_written(written) && !is_summary && !is_repeated {
            changes.push(update);
        }
    }
    changes
}
