//! Checks of custom domains against DNS: which are due, and what becomes of them. What to do is
//! decided by `libs/verification`; here each outcome is one statement.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::verification::{FailureReason, RecordFindings, VerifyStatus};
use uuid::Uuid;

use super::status;
use crate::row::{optional_time, time};
use crate::{Store, StoreError};

/// What a check has to know of a custom domain.
#[derive(Debug, Clone)]
pub struct DomainToCheck {
    /// Its id.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// What its TXT record is to carry.
    pub token: String,
    /// Where its verification stands.
    pub status: VerifyStatus,
    /// It fails then unless it is verified.
    pub deadline: Timestamp,
    /// Daily checks in a row that found its records wrong.
    pub failed_checks: i16,
    /// Who serves the name at present, if that is another tenant.
    pub incumbent: Option<Incumbent>,
}

/// The custom domain of another tenant that serves the same name.
#[derive(Debug, Clone)]
pub struct Incumbent {
    /// Its id.
    pub id: Uuid,
    /// What its TXT record is to carry.
    pub token: String,
}

/// Whether the owner of a custom domain may have it checked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckRequest {
    /// Yes, and the next one is counted from now.
    Accepted,
    /// It was checked too short a time ago.
    TooSoon {
        /// Time until it may.
        retry_after: Duration,
    },
    /// The tenant has no such domain.
    NotFound,
}

/// What came of making a custom domain verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyOutcome {
    /// It serves.
    Verified,
    /// It serves, and the tenant that held the name before has lost it.
    Transferred,
    /// Another tenant holds the name.
    HeldByIncumbent,
    /// The name meets a system domain by now.
    OverlapsSystemDomain,
    /// It was removed meanwhile.
    Removed,
}

impl DomainToCheck {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        let incumbent = match row.try_get("incumbent")? {
            Some(id) => Some(Incumbent { id, token: row.try_get("incumbent_token")? }),
            None => None,
        };
        Ok(Self {
            id,
            name: row.try_get("name")?,
            token: row.try_get("verify_token")?,
            status: status(row, id)?,
            deadline: time(row, "deadline")?,
            failed_checks: row.try_get("failed_checks")?,
            incumbent,
        })
    }
}

/// Of the custom domains `d`.
macro_rules! to_check {
    ($domains:literal) => {
        concat!(
            "SELECT d.id, d.name, d.verify_token, d.verify_status, d.deadline, d.failed_checks,
                    h.id AS incumbent, h.verify_token AS incumbent_token
             FROM ",
            $domains,
            " d LEFT JOIN domain h ON h.name = d.name AND h.serves AND h.id <> d.id AND h.tenant IS NOT NULL"
        )
    };
}

/// What a check found, `$3` and `$4` of the TXT record, `$5` and `$6` of the MX record.
macro_rules! found {
    () => {
        "txt_result = $3, txt_seen = $4, txt_ok = CASE $3 WHEN 'unknown' THEN txt_ok ELSE $3 = 'found' END,
         mx_result = $5, mx_seen = $6, mx_ok = CASE $5 WHEN 'unknown' THEN mx_ok ELSE $5 = 'found' END"
    };
}

impl Store {
    /// Lets the owner of a custom domain have it checked, once in `pause`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn request_domain_check(
        &self,
        tenant: Uuid,
        id: Uuid,
        pause: SignedDuration,
        now: Timestamp,
    ) -> Result<CheckRequest, StoreError> {
        let row = sqlx::query(
            "/* request_domain_check */
            WITH begun AS (
                UPDATE domain SET checked_at = $3
                WHERE id = $2 AND tenant = $1 AND removed_at IS NULL
                  AND (checked_at IS NULL OR checked_at <= $4 OR checked_at >= $5)
                RETURNING id
            )
            SELECT d.checked_at, EXISTS (SELECT FROM begun) AS begun
            FROM domain d WHERE d.id = $2 AND d.tenant = $1 AND d.removed_at IS NULL",
        )
        .bind(tenant)
        .bind(id)
        .bind(now.to_sqlx())
        .bind((now - pause).to_sqlx())
        // Further ahead than processes differ: the clock was set back.
        .bind((now + pause).to_sqlx())
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(CheckRequest::NotFound) };
        if row.try_get("begun")? {
            return Ok(CheckRequest::Accepted);
        }
        // Where another check began in this very moment, the row still shows what was before.
        let checked_at = optional_time(&row, "checked_at")?;
        let left = checked_at.map(|at| pause - now.duration_since(at));
        let left = left.filter(|left| left.is_positive()).map_or(pause, |left| left.min(pause));
        Ok(CheckRequest::TooSoon { retry_after: left.unsigned_abs() })
    }

    /// What a check has to know of a custom domain; `None` where it is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_domain_to_check(&self, id: Uuid) -> Result<Option<DomainToCheck>, StoreError> {
        let row = sqlx::query(concat!(
            "/* find_domain_to_check */ ",
            to_check!("domain"),
            " WHERE d.id = $1 AND d.tenant IS NOT NULL AND d.removed_at IS NULL"
        ))
        .bind(id)
        .fetch_optional(self.pool())
        .await?;
        row.as_ref().map(DomainToCheck::from_row).transpose()
    }

    /// Takes up to `limit` custom domains in hand whose check is due, longest due first. No
    /// other loop takes them for `lease`, or until the check is recorded.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn claim_due_domains(
        &self,
        limit: usize,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<DomainToCheck>, StoreError> {
        let rows = sqlx::query(concat!(
            "/* claim_due_domains */
            WITH due AS (
                SELECT id FROM domain
                WHERE next_check_at <= $1
                  AND (claimed_until IS NULL OR claimed_until <= clock_timestamp()) /* lease */
                ORDER BY next_check_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
            ), claimed AS (
                UPDATE domain d
                SET claimed_until = clock_timestamp() + make_interval(secs => $3) /* lease */
                FROM due WHERE d.id = due.id
                RETURNING d.*
            ) ",
            to_check!("claimed"),
        ))
        .bind(now.to_sqlx())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(lease.as_secs_f64())
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(DomainToCheck::from_row).collect()
    }

    /// How many custom domains are due for a check.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_due_domains(&self, now: Timestamp) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "/* count_due_domains */ SELECT count(*) FROM domain WHERE next_check_at <= $1",
        )
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?)
    }

    /// Records a check of a custom domain that still is `status`; does nothing where it is not.
    /// `failed_checks` is how many daily checks in a row have found its records wrong.
    /// `next_check_at` is when to look again; `None` leaves it, and the claim of whoever has the
    /// domain in hand.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_domain_check(
        &self,
        id: Uuid,
        status: VerifyStatus,
        found: RecordFindings<'_>,
        failed_checks: i16,
        next_check_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        sqlx::query(concat!(
            "/* record_domain_check */ UPDATE domain SET ",
            found!(),
            ", failed_checks = $7, next_check_at = coalesce($8, next_check_at),
                claimed_until = CASE WHEN $8 IS NULL THEN claimed_until END
            WHERE id = $1 AND verify_status = $2 AND removed_at IS NULL AND active",
        ))
        .bind(id)
        .bind(status.as_str())
        .bind(found.txt.finding.as_str())
        .bind(&found.txt.seen)
        .bind(found.mx.finding.as_str())
        .bind(&found.mx.seen)
        .bind(failed_checks)
        .bind(next_check_at.map(|at| at.to_sqlx()))
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Ends a custom domain that still is `status`: it is [`VerifyStatus::Failed`], serves no
    /// longer, and nobody looks at it unless its owner asks. Its mail stays, unreadable.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn fail_custom_domain(
        &self,
        id: Uuid,
        status: VerifyStatus,
        reason: FailureReason,
        found: RecordFindings<'_>,
    ) -> Result<(), StoreError> {
        sqlx::query(concat!(
            "/* fail_custom_domain */ UPDATE domain SET ",
            found!(),
            ", verify_status = 'failed', failure_reason = $7, serves = false, failed_checks = 0,
                next_check_at = NULL, claimed_until = NULL
            WHERE id = $1 AND verify_status = $2 AND removed_at IS NULL AND active",
        ))
        .bind(id)
        .bind(status.as_str())
        .bind(found.txt.finding.as_str())
        .bind(&found.txt.seen)
        .bind(found.mx.finding.as_str())
        .bind(&found.mx.seen)
        .bind(reason.as_str())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Makes a custom domain verified: it serves, and other tenants' pending rows of the name
    /// fail. `displaced` is the row that serves the name, if the name servers said that its own
    /// TXT record is gone: it loses the name with all mailboxes and mail under it. Any other
    /// row that serves the name keeps it.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn verify_custom_domain(
        &self,
        id: Uuid,
        displaced: Option<Uuid>,
        installation_names: &[String],
        next_check_at: Timestamp,
        now: Timestamp,
    ) -> Result<VerifyOutcome, StoreError> {
        let answer: String =
            sqlx::query_scalar("/* verify_custom_domain */ SELECT verify_custom_domain($1, $2, $3, $4, $5)")
                .bind(id)
                .bind(displaced)
                .bind(installation_names)
                .bind(next_check_at.to_sqlx())
                .bind(now.to_sqlx())
                .fetch_one(self.pool())
                .await?;
        Ok(match answer.as_str() {
            "verified" => VerifyOutcome::Verified,
            "transferred" => VerifyOutcome::Transferred,
            "held_by_incumbent" => VerifyOutcome::HeldByIncumbent,
            "overlaps_system_domain" => VerifyOutcome::OverlapsSystemDomain,
            "removed" => VerifyOutcome::Removed,
            _ => return Err(StoreError::unknown_word("verify_custom_domain", &answer)),
        })
    }
}
