//! `kubectl tempmail why`: the objects that are not as declared, with the reason and what to do.

use std::io::Write as _;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt as _};
use tempmail_crds::Condition;
use tempmail_model::clock::{Clock as _, SystemClock};

use super::{Connection, explain};
use crate::command::output;

const HEADER: [&str; 6] = ["NAMESPACE", "OBJECT", "STATE", "REASON", "SINCE", "MESSAGE"];
/// Conditions that are `True` while all is well; all others are absent then.
const POSITIVE: [&str; 4] = ["Ready", "Accepted", "Verified", "Delivering"];

/// Options of `why`.
#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// All namespaces, and the kinds without one: Tenants and SystemDomains
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

/// Lists what is not as declared.
///
/// # Errors
/// The API server refuses.
pub(super) async fn run(args: &WhyArgs, connection: &Connection) -> anyhow::Result<()> {
    let (mut objects, all) = (Vec::new(), args.all_namespaces);
    if all {
        objects.extend(list_of_cluster(&connection.client).await?);
    }
    for resource in kinds(true) {
        let client = connection.client.clone();
        let api: Api<DynamicObject> = if all {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, &connection.namespace, &resource)
        };
        let list = api.list(&ListParams::default()).await.map_err(explain)?;
        objects.extend(list.items.into_iter().map(|object| (resource.clone(), object)));
    }
    let now = SystemClock::default().now();
    let mut rows: Vec<[String; 6]> =
        objects.iter().flat_map(|(resource, object)| rows(resource, object, now)).collect();
    rows.sort();
    let place = if all { "cluster".to_owned() } else { format!("namespace {}", connection.namespace) };
    match (rows.is_empty(), objects.len()) {
        (true, 0) => output::line(&format!("There are no objects of tempmail in the {place}.")),
        (true, count) => output::line(&format!("Everything in the {place} is ready. Objects: {count}.")),
        (false, _) if all => output::table(HEADER, &rows),
        (false, _) => {
            let [_, header @ ..] = HEADER;
            let rows: Vec<[String; 5]> = rows.into_iter().map(|[_, row @ ..]| row).collect();
            output::table(header, &rows)
        }
    }
}

/// The kinds of objects that are in namespaces, or those that are in none.
fn kinds(namespaced: bool) -> impl Iterator<Item = ApiResource> {
    let scope = if namespaced { "Namespaced" } else { "Cluster" };
    let specs = tempmail_crds::all().into_iter().map(|definition| definition.spec);
    specs.filter(move |spec| spec.scope == scope).map(|spec| {
        let kind = GroupVersionKind::gvk(&spec.group, tempmail_crds::VERSION, &spec.names.kind);
        ApiResource::from_gvk_with_plural(&kind, &spec.names.plural)
    })
}

/// The objects that are in no namespace. Those that the caller may not list are left out, with a word about it.
async fn list_of_cluster(client: &Client) -> anyhow::Result<Vec<(ApiResource, DynamicObject)>> {
    let mut objects = Vec::new();
    for resource in kinds(false) {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        match api.list(&ListParams::default()).await {
            Ok(list) => objects.extend(list.items.into_iter().map(|object| (resource.clone(), object))),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                writeln!(std::io::stderr(), "{}s are left out: you may not list them.", resource.kind)?;
            }
            Err(error) => return Err(explain(error)),
        }
    }
    Ok(objects)
}

/// What is not as declared of an object, a row for each reason.
fn rows(resource: &ApiResource, object: &DynamicObject, now: Timestamp) -> Vec<[String; 6]> {
    let namespace = object.namespace().unwrap_or_default();
    // As `kubectl` takes it: another operator may have a kind of the same name.
    let name = format!("{}.{}/{}", resource.kind.to_lowercase(), resource.group, object.name_any());
    let conditions = conditions(object);
    let state = state(&conditions);
    let row = |reason: &str, since: Option<Timestamp>, message: &str| {
        let since = since.map(|since| age(now.duration_since(since))).unwrap_or_default();
        let state = state.to_owned();
        [namespace.clone(), name.clone(), state, reason.to_owned(), since, message.to_owned()]
    };
    let created = object.creation_timestamp().map(|created| created.0);
    if conditions.is_empty() {
        let message = "The operator has not reconciled the object. Check that it runs.";
        return vec![row("Pending", created, message)];
    }
    let mut rows: Vec<[String; 6]> = Vec::new();
    for condition in conditions.iter().filter(|condition| is_abnormal(condition)) {
        let is_repeated = rows.iter().any(|row| row[3] == condition.reason);
        if !is_repeated {
            // The conditions of a new object are those of its definition, from 1970.
            let since = created.max(Some(condition.last_transition_time.0));
            rows.push(row(&condition.reason, since, &condition.message));
        }
    }
    let deleted = object.metadata.deletion_timestamp.as_ref().map(|deleted| deleted.0);
    if rows.is_empty() && deleted.is_some() {
        let message = "The operator removes the finalizer when the resource is released. Check that it runs.";
        rows.push(row("Deleting", deleted, message));
    }
    if rows.is_empty() && !is_observed(object) {
        let message = "The operator has not reconciled the newest spec. Check that it runs.";
        rows.push(row("NotObserved", None, message));
    }
    rows
}

fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    serde_json::from_value(conditions).unwrap_or_default()
}

/// Whether a condition says that something is not as declared.
fn is_abnormal(condition: &Condition) -> bool {
    let is_true = condition.status == "True";
    if POSITIVE.contains(&condition.type_.as_str()) { !is_true } else { is_true }
}

/// Whether someone has to act (`Stalled`), or the object becomes ready by itself (`Reconciling`).
fn state(conditions: &[Condition]) -> &'static str {
    let states = ["Stalled", "Reconciling"];
    let has = |state: &&str| conditions.iter().any(|one| one.type_ == *state && one.status == "True");
    states.into_iter().find(has).unwrap_or_default()
}

/// Whether the status is about the newest spec.
fn is_observed(object: &DynamicObject) -> bool {
    let observed = object.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64);
    observed == object.metadata.generation
}

/// A duration as `kubectl` shows it: in its largest unit.
fn age(age: SignedDuration) -> String {
    match age.as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tempmail_crds::CustomDomain;

    use super::*;

    /// The rows of a CustomDomain of the second generation, an hour after it was created.
    fn shown(observed: i64, conditions: &Value) -> Vec<String> {
        let object = json!({
            "metadata": {"namespace": "team-a", "name": "mail", "generation": 2,
                         "creationTimestamp": "2026-08-01T12:00:00Z"},
            "status": {"observedGeneration": observed, "conditions": conditions},
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let now = "2026-08-01T13:00:00Z".parse().unwrap();
        let rows = rows(&ApiResource::erase::<CustomDomain>(&()), &object, now);
        rows.iter().map(|row| row.join("|")).collect()
    }

    fn condition(kind: &str, status: &str, reason: &str, since: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("{reason}."),
               "lastTransitionTime": since})
    }

    #[test]
    fn names_each_reason_once() {
        let at = "2026-08-01T12:55:00Z";
        let conditions = json!([
            condition("Ready", "False", "TxtRecordMissing", at),
            condition("Accepted", "True", "Accepted", at),
            condition("Verified", "False", "TxtRecordMissing", at),
            condition("Reconciling", "True", "TxtRecordMissing", at),
            condition("ReconciliationPaused", "True", "Paused", at),
        ]);
        assert_eq!(
            shown(2, &conditions),
            [
                "team-a|customdomain.tempmail.dev/mail|Reconciling|TxtRecordMissing|5m|TxtRecordMissing.",
                "team-a|customdomain.tempmail.dev/mail|Reconciling|Paused|5m|Paused.",
            ]
        );
    }

    #[test]
    fn a_new_object_waits_since_it_was_created() {
        let conditions = json!([condition("Ready", "Unknown", "Pending", "1970-01-01T00:00:00Z")]);
        assert_eq!(shown(0, &conditions), ["team-a|customdomain.tempmail.dev/mail||Pending|1h|Pending."]);
        let rows = shown(0, &json!([]));
        let expected = "team-a|customdomain.tempmail.dev/mail||Pending|1h|The operator has not";
        assert!(rows[0].starts_with(expected), "{rows:?}");
    }

    #[test]
    fn a_ready_object_is_listed_while_its_newest_spec_is_not_observed() {
        let conditions = json!([condition("Ready", "True", "Ready", "2026-08-01T12:00:00Z")]);
        assert!(shown(2, &conditions).is_empty());
        let rows = shown(1, &conditions);
        assert!(rows[0].starts_with("team-a|customdomain.tempmail.dev/mail||NotObserved||"), "{rows:?}");
    }

    #[test]
    fn shows_ages_in_their_largest_unit() {
        let shown = [-1, 59, 60, 7_200, 200_000].map(|seconds| age(SignedDuration::from_secs(seconds)));
        assert_eq!(shown, ["0s", "59s", "1m", "2h", "2d"]);
    }
}
