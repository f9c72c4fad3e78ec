//! The fields that several kinds have: references, policies and conditions.

use std::fmt::Debug;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// `meta/v1` Condition.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// What the operator reads and writes in the statuses of all kinds.
pub trait KindStatus: Clone + Debug + Default + PartialEq + Serialize + Send + Sync {
    /// `status.conditions`.
    fn conditions(&self) -> &[Condition];
    /// `status.conditions`, mutably.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
    /// Sets `status.observedGeneration`.
    fn set_observed_generation(&mut self, generation: Option<i64>);
}

/// The Tenant that a namespaced object belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("self == oldSelf")
    .message("tenantRef can't be changed: delete the object and create it again"))]
pub struct TenantRef {
    /// Name of a Tenant that allows the object's namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// The Secret that the operator writes, in the object's namespace. The kinds that have one refuse another
/// name for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct SecretTarget {
    /// Name of the Secret. A Secret with this name must not exist yet.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("a Secret's name has lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit"))]
    pub name: String,
}

/// What deleting the object does to its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The data is kept and managed over HTTP from then on; a tenant is suspended.
    Retain,
    /// The data is deleted, including mail.
    Delete,
}

/// Whether the object may adopt what its tenant created over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// Never adopt.
    Never,
    /// Adopt, unless another object manages it.
    IfUnowned,
}

impl DeletionPolicy {
    pub(crate) fn retain() -> Self {
        Self::Retain
    }

    pub(crate) fn delete() -> Self {
        Self::Delete
    }
}

impl AdoptionPolicy {
    pub(crate) fn never() -> Self {
        Self::Never
    }

    pub(crate) fn if_unowned() -> Self {
        Self::IfUnowned
    }
}

/// Schema of a list map of conditions, so that several field managers can own one condition each.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Conditions of the object, one entry per type.",
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "Type of the condition."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"],
                           "description": "True, False or Unknown."},
                "reason": {"type": "string", "minLength": 1, "maxLength": 128,
                           "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                           "description": "Why, as one word that is stable across versions."},
                "message": {"type": "string", "maxLength": 1024, "description": "What the condition means and what to do."},
                "lastTransitionTime": {"type": "string", "format": "date-time",
                                       "description": "When the status last changed."},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0,
                                       "description": "The metadata.generation that the condition was set for."},
            },
        },
    })
}
