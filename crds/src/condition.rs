//! Conditions of all kinds, and their schema.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `meta/v1` Condition.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

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
