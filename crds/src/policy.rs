//! What happens to data when a resource comes and goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What deleting the resource does to what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It stays, and is managed over HTTP from then on; a tenant is suspended.
    Retain,
    /// It goes, with its mail.
    Delete,
}

/// Whether the resource may take over what its tenant made over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// It never does.
    Never,
    /// It does, where no other resource manages it.
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
