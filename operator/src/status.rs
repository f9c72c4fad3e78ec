//! Writes what is told of an object, where it is not told already.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tempmail_crds::Condition;

use crate::context::Context;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::standing::{ConditionType, Reason, Standing, Truth, Verdict};

/// Who owns the fields of a status.
pub(crate) const FIELD_MANAGER: &str = "tempmail-operator/status";

/// Brings the status of an object up to date; an object that tells it already is not written to. What
/// changed is told by events.
pub(crate) async fn write<K: Kind>(
    object: &K,
    standing: Standing<K::Status>,
    context: &Context,
) -> Result<(), Failure> {
    let former = object.status();
    let known = former.map(|status| K::conditions(status).to_vec()).unwrap_or_default();
    let mut status = standing.status;
    K::set_generation(&mut status, object.meta().generation);
    *K::conditions_mut(&mut status) =
        conditions(&known, &standing.verdicts, object.meta().generation, context.clock.now());
    if former.map(ours::<K>).as_ref() == Some(&status) {
        metrics::counter!("tempmail_operator_status_patches_total", "outcome" => "skipped").increment(1);
        return Ok(());
    }
    patch(object, &status, context).await?;
    context.recount_of(object);
    for verdict in news(&known, &standing.verdicts) {
        context.publish(&object.object_ref(&()), verdict.reason, &verdict.message).await;
    }
    Ok(())
}

async fn patch<K: Kind>(object: &K, status: &K::Status, context: &Context) -> Result<(), Failure> {
    // An operator that leads no longer has looked at what is out of date.
    context.store.check_epoch(context.epoch).await?;
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "name": object.name_any(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
        },
        "status": status,
    });
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    object.api(&context.client).patch_status(&object.name_any(), &parameters, &Patch::Apply(patch)).await?;
    metrics::counter!("tempmail_operator_status_patches_total", "outcome" => "written").increment(1);
    Ok(())
}

/// Says of an object that it is left alone, and leaves all else as it is said.
pub(crate) async fn pause<K: Kind>(object: &K, context: &Context) -> Result<(), Failure> {
    let paused = Verdict::new(ConditionType::ReconciliationPaused, Truth::True, Reason::Paused);
    let Some(status) = object.status() else { return Ok(()) };
    if K::conditions(status).iter().any(|one| one.type_ == paused.kind.as_str()) {
        return Ok(());
    }
    let mut status = ours::<K>(status);
    let conditions = K::conditions_mut(&mut status);
    conditions.extend(self::conditions(&[], &[paused], object.meta().generation, context.clock.now()));
    patch(object, &status, context).await
}

/// The status as far as it is ours: others may add conditions of their own.
fn ours<K: Kind>(status: &K::Status) -> K::Status {
    let mut status = status.clone();
    K::conditions_mut(&mut status).retain(|one| is_ours(&one.type_));
    status
}

fn is_ours(condition: &str) -> bool {
    ConditionType::ALL.iter().any(|kind| kind.as_str() == condition)
}

/// The conditions of these verdicts, in the order of [`ConditionType::ALL`]. The time of the last
/// transition moves when the status does, and only then.
fn conditions(
    known: &[Condition],
    verdicts: &[Verdict],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let told = |kind| verdicts.iter().find(|verdict| verdict.kind == kind);
    ConditionType::ALL
        .into_iter()
        .filter_map(told)
        .map(|verdict| {
            let former = known.iter().find(|one| one.type_ == verdict.kind.as_str());
            let since = former
                .filter(|one| one.status == verdict.truth.as_str())
                .map_or_else(|| Time(to_seconds(now)), |one| one.last_transition_time.clone());
            Condition {
                type_: verdict.kind.as_str().to_owned(),
                status: verdict.truth.as_str().to_owned(),
                reason: verdict.reason.as_str().to_owned(),
                message: verdict.message.clone().into_owned(),
                last_transition_time: since,
                observed_generation: generation,
            }
        })
        .collect()
}

/// Kubernetes keeps seconds: more of a time would never equal what is read back.
pub(crate) fn to_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// What was not told before: each reason once, and what holds by itself (Reconciling, Stalled) not at
/// all.
fn news<'a>(known: &[Condition], verdicts: &'a [Verdict]) -> Vec<&'a Verdict> {
    let mut news: Vec<&Verdict> = Vec::new();
    for verdict in verdicts {
        let is_known = known.iter().any(|one| {
            one.type_ == verdict.kind.as_str()
                && one.status == verdict.truth.as_str()
                && one.reason == verdict.reason.as_str()
        });
        let is_summary = matches!(verdict.kind, ConditionType::Reconciling | ConditionType::Stalled);
        if !is_known && !is_summary && !news.iter().any(|one| one.reason == verdict.reason) {
            news.push(verdict);
        }
    }
    news
}
