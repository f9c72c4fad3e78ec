//! Custom domains as their tenants create, list and remove them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::limits::OWNED_PAGE_SIZE;
use tempmail_model::verification::{FailureReason, RecordFinding, VerifyStatus};
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ChangeError, ManagedBy, optional_time, rows_before, time};

/// A custom domain of a tenant.
#[derive(Debug, Clone)]
pub struct CustomDomain {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Status of its verification.
    pub status: VerifyStatus,
    /// Expected value of its TXT record.
    pub token: String,
    /// Why it failed, if it did.
    pub failure_reason: Option<FailureReason>,
    /// The TXT record was found when the name servers last answered.
    pub txt_ok: bool,
    /// The MX record was found when the name servers last answered.
    pub mx_ok: bool,
    /// What the last check found for the TXT record; `None` before the first.
    pub txt: Option<RecordFinding>,
    /// What the last check found for the MX record; `None` before the first.
    pub mx: Option<RecordFinding>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it fails unless it is verified.
    pub deadline: Timestamp,
    /// When it was last verified.
    pub verified_at: Option<Timestamp>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it may be verified; `false` while the Kubernetes object that manages it is not accepted.
    pub active: bool,
}

/// A custom domain to create.
#[derive(Debug, Clone, Copy)]
pub struct NewCustomDomain<'a> {
    /// A new UUIDv7, which the caller makes.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: &'a str,
    /// Expected value of its TXT record.
    pub token: &'a str,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Names of the installation itself, which count as system domains.
    pub installation_names: &'a [String],
    /// When it fails unless it is verified.
    pub deadline: Timestamp,
    /// When it is checked first.
    pub next_check_at: Timestamp,
}

/// What came of creating a custom domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainCreation {
    /// It was created, and is pending.
    Created,
    /// The tenant has it already.
    AlreadyExists,
    /// The tenant has reached its limit.
    LimitReached,
    /// It is equal to, above or below a system domain.
    OverlapsSystemDomain,
    /// The tenant is suspended or removed.
    TenantDisabled,
}

impl DomainCreation {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get(0)? {
            "created" => Ok(Self::Created),
            "limit_reached" => Ok(Self::LimitReached),
            "overlaps_system_domain" => Ok(Self::OverlapsSystemDomain),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            word => Err(StoreError::unknown_word("create_custom_domain", word)),
        }
    }
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
            txt: super::txt_finding(row, id)?,
            mx: super::mx_finding(row, id)?,
            created_at: time(row, "created_at")?,
            deadline: time(row, "deadline")?,
            verified_at: optional_time(row, "verified_at")?,
            managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "domain", id)?,
            active: row.try_get("active")?,
        })
    }
}

pub(super) fn status(row: &PgRow, id: Uuid) -> Result<VerifyStatus, StoreError> {
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

/// SQL for the columns of a domain `d` that [`CustomDomain`] reads.
macro_rules! custom_domain_columns {
    () => {
        "d.id, d.tenant, d.name, d.verify_status, d.verify_token, d.failure_reason, d.txt_ok, d.mx_ok, d.txt_result,
         d.txt_seen, d.mx_result, d.mx_seen, d.created_at, d.deadline, d.verified_at, d.managed_by, d.active"
    };
}
pub(crate) use custom_domain_columns;

/// SQL for the custom domains of a tenant that are not removed.
macro_rules! custom_domain {
    () => {
        concat!(
            "SELECT ",
            custom_domain_columns!(),
            " FROM domain d WHERE d.tenant = $1 AND d.removed_at IS NULL "
        )
    };
}

impl Store {
    /// Creates a custom domain. Locks the tenant first, so that its limit holds.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was created.
    pub async fn create_custom_domain(
        &self,
        new: NewCustomDomain<'_>,
        now: Timestamp,
    ) -> Result<DomainCreation, StoreError> {
        let statement = sqlx::query(
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
        .bind(now.to_sqlx());
        match self.fetch_one(statement, DomainCreation::from_row).await {
            Err(error) if error.constraint() == Some("domain_of_tenant") => Ok(DomainCreation::AlreadyExists),
            created => created,
        }
    }

    /// A page (from 1, 1,000 domains) of a tenant's custom domains, newest first.
    pub async fn list_custom_domains(
        &self,
        tenant: Uuid,
        page: i64,
    ) -> Result<Vec<CustomDomain>, StoreError> {
        self.fetch_all(
            sqlx::query(concat!(
                "/* list_custom_domains */ ",
                custom_domain!(),
                "ORDER BY d.created_at DESC, d.id DESC OFFSET $2 LIMIT $3"
            ))
            .bind(tenant)
            .bind(rows_before(page, OWNED_PAGE_SIZE))
            .bind(OWNED_PAGE_SIZE),
            CustomDomain::from_row,
        )
        .await
    }

    /// A custom domain of a tenant.
    pub async fn find_custom_domain(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Option<CustomDomain>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!("/* find_custom_domain */ ", custom_domain!(), "AND d.id = $2"))
                .bind(tenant)
                .bind(id),
            CustomDomain::from_row,
        )
        .await
    }

    /// Removes a custom domain with its mailboxes and mail, unless a Kubernetes object manages it: hidden at once,
    /// deleted by the worker.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn remove_custom_domain(
        &self,
        tenant: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let answer: String = self
            .fetch_value(
                sqlx::query("/* remove_custom_domain */ SELECT remove_custom_domain($1, $2, $3, $4)")
                    .bind(id)
                    .bind(tenant)
                    .bind(ManagedBy::Api.as_str())
                    .bind(now.to_sqlx()),
            )
            .await?;
        Ok(match answer.as_str() {
            "removed" => Ok(()),
            "managed" => Err(ChangeError::ManagedByKubernetes),
            "not_found" => Err(ChangeError::NotFound),
            _ => return Err(StoreError::unknown_word("remove_custom_domain", &answer)),
        })
    }

    /// Deletes the rows of removed custom domains whose mailboxes and mail are deleted (which needs the row until
    /// then). Returns how many.
    pub async fn delete_removed_domains(&self) -> Result<u64, StoreError> {
        self.affected_rows(sqlx::query(
            "/* delete_removed_domains */
            DELETE FROM domain d
            WHERE d.removed_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM mailbox b WHERE b.domain = d.id)
              AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox = d.id)",
        ))
        .await
    }
}
