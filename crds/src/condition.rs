//! Conditions as all kinds have them, and the schema that bounds them.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `meta/v1` Condition.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A list of conditions, one a type, so that several writers may own one each.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What is true of the object, one entry a type.",
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "What is told."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 128,
                           "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                           "description": "Why, in one word that does not change between versions."},
                "message": {"type": "string", "maxLength": 1024, "description": "What to do."},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0,
                                       "description": "Generation of the spec that this is about."},
            },
        },
    })
}
