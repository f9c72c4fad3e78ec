//! What comes of making and changing the things that a tenant manages.

use uuid::Uuid;

use crate::StoreError;

/// What came of making a thing that a tenant may have so many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is there.
    Created,
    /// The tenant has as many as it may.
    LimitReached,
    /// The tenant is suspended or gone.
    TenantDisabled,
}

impl CreateOutcome {
    /// What the answer `word` of a function of the schema means.
    pub(crate) fn from_word(function: &'static str, word: &str) -> Result<Self, StoreError> {
        match word {
            "created" => Ok(Self::Created),
            "limit_reached" => Ok(Self::LimitReached),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            _ => Err(StoreError::unknown_word(function, word)),
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

    /// What `managed_by` of the row `id` of `table` means.
    pub(crate) fn from_word(word: &str, table: &'static str, id: Uuid) -> Result<Self, StoreError> {
        [Self::Api, Self::Kubernetes]
            .into_iter()
            .find(|managed_by| managed_by.as_str() == word)
            .ok_or(StoreError::Inconsistent { table, column: "managed_by", id })
    }
}

/// Why a thing that its owner names by id stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeError {
    /// There is none of that id, or it is another tenant's.
    NotFound,
    /// A Kubernetes resource manages it.
    ManagedByKubernetes,
}

impl ChangeError {
    /// What a statement that changes the row `id` of `table` did, by the `managed_by` of the row it found.
    pub(crate) fn unless_changed(
        managed_by: Option<&str>,
        table: &'static str,
        id: Uuid,
    ) -> Result<Result<(), Self>, StoreError> {
        let Some(word) = managed_by else { return Ok(Err(Self::NotFound)) };
        Ok(match ManagedBy::from_word(word, table, id)? {
            ManagedBy::Kubernetes => Err(Self::ManagedByKubernetes),
            ManagedBy::Api => Ok(()),
        })
    }
}
