//! Custom domains as their tenants see them: made, listed and removed. What the records in DNS
//! do to them is in [`check`].

mod check;
mod finding;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::limits::PAGE_SIZE;
use tempmail_model::verification::{FailureReason, RecordFinding, VerifyStatus};
use uuid::Uuid;

use crate::change::{ChangeError, ManagedBy};
use crate::page::rows_before;
use crate::row::{optional_time, time};
use crate::{Store, StoreError};

pub use check::{CheckRequest, DomainToCheck, Incumbent, VerifyOutcome};

/// A custom domain of a tenant.
#[derive(Debug, Clone)]
pub struct CustomDomain {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Where its verification stands.
    pub status: VerifyStatus,
    /// What its TXT record is to carry.
    pub token: String,
    /// Why it failed, where it did.
    pub failure_reason: Option<FailureReason>,
    /// The TXT record was found when the name servers last answered.
    pub txt_ok: bool,
    /// The MX record was found when the name servers last answered.
    pub mx_ok: bool,
    /// What the last check found of the TXT record; `None` before the first.
    pub txt: Option<RecordFinding>,
    /// What the last check found of the MX record; `None` before the first.
    pub mx: Option<RecordFinding>,
    /// When it was made.
    pub created_at: Timestamp,
    /// It fails then unless it is verified.
    pub deadline: Timestamp,
    /// When it last became verified.
    pub verified_at: Option<Timestamp>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it may be verified: not so while the object that manages it is not accepted.
    pub active: bool,
}

/// A custom domain to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewCustomDomain<'a> {
    /// Its id.
    pub id: Uuid,
    /// Whose it will be.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: &'a str,
    /// What its TXT record is to carry.
    pub token: &'a str,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Names of the installation itself, which count as system domains.
    pub installation_names: &'a [String],
    /// When it fails unless it is verified.
    pub deadline: Timestamp,
    /// When its records are looked for first.
    pub next_check_at: Timestamp,
}

/// What came of making a custom domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainCreation {
    /// It is there, and pending.
    Created,
    /// The tenant has it already.
    AlreadyExists,
    /// The tenant has as many custom domains as it may.
    LimitReached,
    /// It is equal to, above or below a system domain.
    OverlapsSystemDomain,
    /// The tenant is suspended or gone.
    TenantDisabled,
}

impl CustomDomain {
    pub(crate) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        let failure_reason: Option<&str> = row.try_get("failure_reason")?;
        Ok(Self {
            id,
            tenant: row.try_get("tenant")?,
            name: row.try_get("name")?,
            status: status(row, id)?,
            token: row.try_get("verify_token")?,
            failure_reason: failure_reason.map(|word| reason(word, id)).transpose()?,
            txt_ok: row.try_get("txt_ok")?,
            mx_ok: row.try_get("mx_ok")?,
            txt: finding::txt(row, id)?,
            mx: finding::mx(row, id)?,
            created_at: time(row, "created_at")?,
            deadline: time(row, "deadline")?,
            verified_at: optional_time(row, "verified_at")?,
            managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "domain", id)?,
            active: row.try_get("active")?,
        })
    }
}

fn status(row: &PgRow, id: Uuid) -> Result<VerifyStatus, StoreError> {
    let word: &str = row.try_get("verify_status")?;
    [VerifyStatus::Pending, VerifyStatus::Verified, VerifyStatus::Failed]
        .into_iter()
        .find(|status| status.as_str() == word)
        .ok_or(StoreError::Inconsistent { table: "domain", column: "verify_status", id })
}

fn reason(word: &str, id: Uuid) -> Result<FailureReason, StoreError> {
    [FailureReason::VerificationTimedOut, FailureReason::RecordsLost, FailureReason::ClaimedByAnother]
        .into_iter()
        .find(|reason| reason.as_str() == word)
        .ok_or(StoreError::Inconsistent { table: "domain", column: "failure_reason", id })
}

/// A custom domain that is not removed.
macro_rules! custom_domain {
    () => {
        "SELECT id, tenant, name, verify_status, verify_token, failure_reason, txt_ok, mx_ok, txt_result, txt_seen,
                mx_result, mx_seen, created_at, deadline, verified_at, managed_by, active
         FROM domain WHERE tenant = $1 AND removed_at IS NULL "
    };
}

impl Store {
    /// Makes a custom domain. The tenant is locked first, so that its limit holds.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was made.
    pub async fn create_custom_domain(
        &self,
        new: NewCustomDomain<'_>,
        now: Timestamp,
    ) -> Result<DomainCreation, StoreError> {
        let answered = sqlx::query_scalar(
            "/* create_custom_domain */ SELECT create_custom_domain($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(new.id)
        .bind(new.tenant)
        .bind(new.name)
        .bind(new.token)
        .bind(new.managed_by.as_str())
        .bind(new.installation_names)
        .bind(new.deadline.to_sqlx())
        .bind(new.next_check_at.to_sqlx())
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await
        .map_err(StoreError::from);
        let answer: String = match answered {
            Err(error) if error.constraint() == Some("domain_of_tenant") => {
                return Ok(DomainCreation::AlreadyExists);
            }
            answered => answered?,
        };
        match answer.as_str() {
            "created" => Ok(DomainCreation::Created),
            "limit_reached" => Ok(DomainCreation::LimitReached),
            "overlaps_system_domain" => Ok(DomainCreation::OverlapsSystemDomain),
            "tenant_disabled" => Ok(DomainCreation::TenantDisabled),
            _ => Err(StoreError::unknown_word("create_custom_domain", &answer)),
        }
    }

    /// A page (from 1, 30 domains) of a tenant's custom domains, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_custom_domains(
        &self,
        tenant: Uuid,
        page: i64,
    ) -> Result<Vec<CustomDomain>, StoreError> {
        let rows = sqlx::query(concat!(
            "/* list_custom_domains */ ",
            custom_domain!(),
            "ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT $3"
        ))
        .bind(tenant)
        .bind(rows_before(page))
        .bind(PAGE_SIZE)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(CustomDomain::from_row).collect()
    }

    /// A custom domain of a tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_custom_domain(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Option<CustomDomain>, StoreError> {
        let row = sqlx::query(concat!("/* find_custom_domain */ ", custom_domain!(), "AND id = $2"))
            .bind(tenant)
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(CustomDomain::from_row).transpose()
    }

    /// Removes a custom domain with its mailboxes and mail, unless a Kubernetes resource manages
    /// it: gone at once, carried out by the worker.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn remove_custom_domain(
        &self,
        tenant: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let answer: String =
            sqlx::query_scalar("/* remove_custom_domain */ SELECT remove_custom_domain($1, $2, $3, $4)")
                .bind(id)
                .bind(tenant)
                .bind(ManagedBy::Api.as_str())
                .bind(now.to_sqlx())
                .fetch_one(self.pool())
                .await?;
        Ok(match answer.as_str() {
            "removed" => Ok(()),
            "managed" => Err(ChangeError::ManagedByKubernetes),
            "not_found" => Err(ChangeError::NotFound),
            _ => return Err(StoreError::unknown_word("remove_custom_domain", &answer)),
        })
    }

    /// Forgets the removed custom domains whose mailboxes and mail are gone (their deletion
    /// still needs the row). Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_removed_domains(&self) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* delete_removed_domains */
            DELETE FROM domain d
            WHERE d.removed_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM mailbox b WHERE b.domain = d.id)
              AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox = d.id)",
        )
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }
}
