//! The CustomResourceDefinitions, as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};

/// The definitions of the six kinds.
pub fn all() -> Vec<CustomResourceDefinition> {
    let kinds: [(CustomResourceDefinition, &[&str]); 6] = [
        (Tenant::crd(), &["Ready", "Accepted"]),
        (SystemDomain::crd(), &["Ready", "Accepted"]),
        (CustomDomain::crd(), &["Ready", "Accepted", "Verified"]),
        (Webhook::crd(), &["Ready", "Accepted", "Delivering"]),
        (ApiToken::crd(), &["Ready", "Accepted"]),
        (Mailbox::crd(), &["Ready", "Accepted"]),
    ];
    kinds.into_iter().map(|(crd, conditions)| with_default_status(crd, conditions)).collect()
}

/// The definitions as YAML documents, each with the labels and annotations that `kubectl apply`
/// and Helm leave alone.
///
/// # Errors
/// A definition can't be written as YAML: a fault of ours.
pub fn manifests() -> Result<String, serde_saphyr::ser::Error> {
    let documents: Result<Vec<_>, _> = all().iter().map(serde_saphyr::to_string).collect();
    Ok(documents?.join("---\n"))
}

/// Gives new objects conditions that say that nobody looked at them yet. Without them, whoever
/// waits for an object would take one that the operator has not seen for a finished one.
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

fn status_schema(crd: &mut CustomResourceDefinition) -> Option<&mut JSONSchemaProps> {
    let schema = crd.spec.versions.first_mut()?.schema.as_mut()?;
    schema.open_api_v3_schema.as_mut()?.properties.as_mut()?.get_mut("status")
}
