//! What comes of making and changing the things that a tenant manages.

use uuid::Uuid;

use crate::StoreError;

/// What came of making a thing that a tenant may have so many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It is there.
    Created,
    /// The tenant has as many as it may.
    LimitReached,
    /// The tenant is suspended or gone.
    TenantDisabled,
}

impl Creation {
    /// The word that a function of the schema answers, for the row `id` of `table`.
    pub(crate) fn from_word(word: &str, table: &'static str, id: Uuid) -> Result<Self, StoreError> {
        match word {
            "created" => Ok(Self::Created),
            "limit_reached" => Ok(Self::LimitReached),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            _ => Err(StoreError::Inconsistent { table, column: "creation", id }),
        }
    }
}

/// Why a thing that its owner names by id stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is none of that id, or it is another tenant's.
    NotFound,
    /// A Kubernetes resource manages it.
    ManagedByKubernetes,
}

impl Refused {
    /// What a statement that changes one row did, by the `managed_by` of the row it found.
    pub(crate) fn unless_changed(managed_by: Option<&str>) -> Result<(), Self> {
        match managed_by {
            None => Err(Self::NotFound),
            Some("kubernetes") => Err(Self::ManagedByKubernetes),
            Some(_) => Ok(()),
        }
    }
}
