//! How many objects have each condition, as a metric.

use std::collections::HashMap;
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_crds::{Condition, KindStatus};
use tokio_util::sync::CancellationToken;

use super::cache::CacheSync;
use crate::kind::Kind;
use crate::status::{ConditionStatus, ConditionType};

/// Interval between counts.
const INTERVAL: Duration = Duration::from_secs(10);
const STATUSES: [ConditionStatus; 3] =
    [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];
const METRIC: &str = "tempmail_operator_condition";

/// Objects by type and status of a condition.
type Counts = HashMap<(&'static str, &'static str), u32>;

/// Counts the cached objects of a kind by their conditions until `stop` is cancelled.
pub(crate) async fn report_periodically<K: Kind>(
    objects: reflector::Store<DeserializeGuard<K>>,
    synced: CacheSync,
    stop: CancellationToken,
) {
    let Some(()) = stop.run_until_cancelled(synced.synced()).await else { return };
    let (kind, mut counts) = (K::kind(&()), Counts::new());
    loop {
        count(&objects, &mut counts);
        for (&(condition, status), &objects) in &counts {
            metrics::gauge!(METRIC, "kind" => kind.clone(), "type" => condition, "status" => status)
                .set(objects);
        }
        if stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// Counts anew. What was counted before and is gone becomes 0, and `Ready` is always there.
fn count<K: Kind>(objects: &reflector::Store<DeserializeGuard<K>>, counts: &mut Counts) {
    counts.values_mut().for_each(|objects| *objects = 0);
    for status in STATUSES {
        counts.entry((ConditionType::Ready.as_str(), status.as_str())).or_default();
    }
    for object in objects.state() {
        match &object.0 {
            Ok(object) => {
                let conditions = object.status().map(KindStatus::conditions).unwrap_or_default();
                for key in conditions.iter().filter_map(key) {
                    *counts.entry(key).or_default() += 1;
                }
            }
            // What can't be decoded is not ready.
            Err(_invalid) => {
                let key = (ConditionType::Ready.as_str(), ConditionStatus::False.as_str());
                *counts.entry(key).or_default() += 1;
            }
        }
    }
}

/// The labels of a condition; `None` for one of another writer.
fn key(condition: &Condition) -> Option<(&'static str, &'static str)> {
    let kind = ConditionType::ALL.into_iter().find(|kind| kind.as_str() == condition.type_)?;
    let status = STATUSES.into_iter().find(|status| status.as_str() == condition.status)?;
    Some((kind.as_str(), status.as_str()))
}
