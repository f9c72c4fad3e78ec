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

/// Who may change a thing of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    /// Its tenant, over HTTP.
    Api,
    /// The operator, by its resource.
    Kubernetes,
}

impl ManagedBy {
    /// The word for it in the interface and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// What the store's word means: the schema knows no third one.
    pub(crate) fn from_word(word: &str) -> Self {
        if word == Self::Kubernetes.as_str() { Self::Kubernetes } else { Self::Api }
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
        match managed_by.map(ManagedBy::from_word) {
            None => Err(Self::NotFound),
            Some(ManagedBy::Kubernetes) => Err(Self::ManagedByKubernetes),
            Some(ManagedBy::Api) => Ok(()),
        }
    }
}
