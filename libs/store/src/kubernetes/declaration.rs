//! What came of declaring a row for a Kubernetes object.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::error::StoreError;

/// What became of the row that an object declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclareOutcome {
    /// It was created.
    Created,
    /// It existed without an object, and is this object's now.
    Adopted,
    /// It was this object's already, and matches the object.
    Existing,
    /// It was inactive, and starts over.
    Restored,
}

/// Why an object has no row, or not the one that it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclareError {
    /// Another tenant has this name.
    NameTaken,
    /// The tenant to adopt does not exist, or another object manages it.
    NotAdoptable,
    /// Another object manages the row.
    ManagedByAnother,
    /// The row was created over HTTP, and the object does not adopt it.
    NotAdopted,
    /// The row belongs to another tenant than the one that the object refers to now.
    TenantChanged,
    /// The tenant is suspended or removed.
    TenantDisabled,
    /// The tenant has reached its limit.
    LimitReached,
    /// The domain is equal to, above or below a system domain.
    OverlapsSystemDomain,
    /// The domain is equal to, above or below a pending or verified custom domain.
    OverlapsCustomDomain,
    /// The domain does not serve, or not this tenant.
    NoSuchDomain,
    /// The address is in use or held.
    AddressTaken,
}

/// What came of declaring a row.
pub type DeclareResult = Result<DeclareOutcome, DeclareError>;

/// The answer of the SQL function `function`.
pub(super) fn declare_result(function: &'static str, row: &PgRow) -> Result<DeclareResult, StoreError> {
    Ok(match row.try_get(0)? {
        "created" => Ok(DeclareOutcome::Created),
        "adopted" => Ok(DeclareOutcome::Adopted),
        "existing" => Ok(DeclareOutcome::Existing),
        "restored" => Ok(DeclareOutcome::Restored),
        "name_taken" => Err(DeclareError::NameTaken),
        "not_adoptable" => Err(DeclareError::NotAdoptable),
        "managed_by_another" => Err(DeclareError::ManagedByAnother),
        "not_adopted" => Err(DeclareError::NotAdopted),
        "tenant_changed" => Err(DeclareError::TenantChanged),
        "tenant_disabled" => Err(DeclareError::TenantDisabled),
        "limit_reached" => Err(DeclareError::LimitReached),
        "overlaps_system_domain" => Err(DeclareError::OverlapsSystemDomain),
        "overlaps_custom_domain" => Err(DeclareError::OverlapsCustomDomain),
        "no_such_domain" => Err(DeclareError::NoSuchDomain),
        "address_taken" => Err(DeclareError::AddressTaken),
        word => return Err(StoreError::unknown_word(function, word)),
    })
}
