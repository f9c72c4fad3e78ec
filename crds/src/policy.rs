//! What happens to data when an object is created or deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
