//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};

/// The definitions of all kinds.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<Tenant>(&["Ready", "Accepted"]),
        definition::<SystemDomain>(&["Ready", "Accepted"]),
        definition::<CustomDomain>(&["Ready", "Accepted", "Verified"]),
        definition::<Webhook>(&["Ready", "Accepted", "Delivering"]),
        definition::<ApiToken>(&["Ready", "Accepted"]),
        definition::<Mailbox>(&["Ready", "Accepted"]),
    ]
}

/// The definition of a kind whose new objects have these conditions.
fn definition<K: CustomResourceExt>(conditions: &[&str]) -> CustomResourceDefinition {
    with_common_columns(with_default_status(K::crd(), conditions))
}

/// The definitions as YAML documents.
///
/// # Errors
/// A definition can't be serialized, which is a bug.
pub fn manifests() -> Result<String, serde_saphyr::ser::Error> {
    let documents: Result<Vec<_>, _> = all().iter().map(serde_saphyr::to_string).collect();
    Ok(documents?.join("---\n"))
}

/// Sets the default status of new objects: conditions with the reason `Pending`. Without conditions,
/// kstatus clients take an object that the operator has not processed yet for a finished one.
fn with_default_status(mut crd: CustomResourceDefinition, conditions: &[&str]) -> CustomResourceDefinition {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|kind| {
            json!({
                "type": kind,
                "status": "Unknown",
                "reason": "Pending",
                "message": "Waiting for the operator.",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        })
        .collect();
    if let Some(status) = status_schema(&mut crd) {
        status.default = Some(JSON(json!({ "conditions": conditions })));
    }
    crd
}

/// Appends the printer columns of all kinds: `Ready`, its reason and the age.
fn with_common_columns(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let column = |name: &str, type_: &str, json_path: &str| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    };
    let ready = column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status");
    let reason = column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason");
    let age = column("Age", "date", ".metadata.creationTimestamp");
    for version in &mut crd.spec.versions {
        version.additional_printer_columns.get_or_insert_default().extend([
            ready.clone(),
            reason.clone(),
            age.clone(),
        ]);
    }
    crd
}

fn status_schema(crd: &mut CustomResourceDefinition) -> Option<&mut JSONSchemaProps> {
    let schema = crd.spec.versions.first_mut()?.schema.as_mut()?;
    schema.open_api_v3_schema.as_mut()?.properties.as_mut()?.get_mut("status")
}
