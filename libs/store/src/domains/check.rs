//! Checks of custom domains: which are due, and how their outcome is recorded. `libs/verification` decides the outcome;
//! each outcome is one statement here.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::verification::{FailureReason, RecordFindings, VerifyStatus};
use uuid::Uuid;

use super::custom::status;
use crate::error::StoreError;
use crate::pool::{Statement, Store};
use crate::row::{optional_time, time};

/// A custom domain to check.
#[derive(Debug, Clone)]
pub struct DomainToCheck {
    /// The id of its row.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Expected value of its TXT record.
    pub token: String,
    /// Status of its verification.
    pub status: VerifyStatus,
    /// When it fails unless it is verified.
    pub deadline: Timestamp,
    /// Consecutive daily checks that found a record missing or different.
    pub failed_checks: i16,
    /// The custom domain of another tenant that serves the name now.
    pub incumbent: Option<Incumbent>,
}

/// How many custom domains there are to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainsToCheck {
    /// Those whose check is due.
    pub due: i64,
    /// Those that are not verified yet, and have not failed.
    pub pending: i64,
}

/// A custom domain of another tenant that serves the same name.
#[derive(Debug, Clone)]
pub struct Incumbent {
    /// The id of its row.
    pub id: Uuid,
    /// Expected value of its TXT record.
    pub token: String,
}

/// Whether a check that the owner of a custom domain requests is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckRequest {
    /// It is.
    Accepted,
    /// The last request was too recent.
    TooSoon {
        /// Time until the next request is accepted.
        retry_after: Duration,
    },
    /// The tenant has no such domain.
    NotFound,
}

/// What came of verifying a custom domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyOutcome {
    /// It serves.
    Verified,
    /// It serves, and another tenant lost the name.
    Transferred,
    /// The domain of another tenant serves the name.
    HeldByIncumbent,
    /// The name is equal to, above or below a system domain.
    OverlapsSystemDomain,
    /// It is removed.
    Removed,
}

impl CheckRequest {
    fn from_row(row: &PgRow, pause: SignedDuration, now: Timestamp) -> Result<Self, StoreError> {
        if row.try_get("accepted")? {
            return Ok(Self::Accepted);
        }
        // Where another request was accepted at the same time, the row still has the earlier one.
        let requested_at = optional_time(row, "check_requested_at")?;
        let left = requested_at.map(|at| pause - now.duration_since(at));
        let left = left.filter(|left| left.is_positive()).map_or(pause, |left| left.min(pause));
        Ok(Self::TooSoon { retry_after: left.unsigned_abs() })
    }
}

impl DomainsToCheck {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { due: row.try_get("due")?, pending: row.try_get("pending")? })
    }
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

/// SQL: the columns of [`DomainToCheck`] from `$domains`.
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

/// SQL: sets the columns with the findings; `$3` and `$4` of the TXT record, `$5` and `$6` of the MX record.
macro_rules! found {
    () => {
        "txt_result = $3, txt_seen = $4, txt_ok = CASE $3 WHEN 'unknown' THEN txt_ok ELSE $3 = 'found' END,
         mx_result = $5, mx_seen = $6, mx_ok = CASE $5 WHEN 'unknown' THEN mx_ok ELSE $5 = 'found' END"
    };
}

/// Checks of one tenant's domains that are claimed at once.
const CHECKS_OF_A_TENANT: i64 = 5;

/// The tenants are read one by one from the index (a loose index scan). Those of a tenant that are claimed already are
/// among its longest due, so they count.
const CLAIM_DUE_DOMAINS: &str = concat!(
    "/* claim_due_domains */
    WITH RECURSIVE owner (tenant) AS (
        (SELECT d.tenant FROM domain d WHERE d.next_check_at IS NOT NULL AND d.tenant IS NOT NULL
          ORDER BY d.tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT d.tenant FROM domain d WHERE d.next_check_at IS NOT NULL AND d.tenant > o.tenant
                 ORDER BY d.tenant LIMIT 1)
        FROM owner o WHERE o.tenant IS NOT NULL
    ), turn AS (
        SELECT c.id FROM owner o
        CROSS JOIN LATERAL (
            SELECT n.id, n.next_check_at, n.claimed_until, row_number() OVER (ORDER BY n.next_check_at) AS number
            FROM (SELECT d.id, d.next_check_at, d.claimed_until FROM domain d
                  WHERE d.tenant = o.tenant AND d.next_check_at <= $1
                  ORDER BY d.next_check_at LIMIT $4) n
        ) c
        WHERE c.claimed_until IS NULL OR c.claimed_until <= clock_timestamp() /* lease */
        ORDER BY c.number, c.next_check_at LIMIT $2
    ), due AS (
        SELECT d.id FROM domain d JOIN turn t ON t.id = d.id
        WHERE d.next_check_at <= $1
          AND (d.claimed_until IS NULL OR d.claimed_until <= clock_timestamp()) /* lease */
        FOR NO KEY UPDATE OF d SKIP LOCKED
    ), claimed AS (
        UPDATE domain d
        SET claimed_until = clock_timestamp() + make_interval(secs => $3) /* lease */
        FROM due WHERE d.id = due.id
        RETURNING d.id, d.name, d.verify_token, d.verify_status, d.deadline, d.failed_checks
    ) ",
    to_check!("claimed"),
);

/// A statement with the first six arguments of those with [`found!`].
fn with_findings<'q>(
    statement: Statement<'q>,
    id: Uuid,
    status: VerifyStatus,
    found: RecordFindings<'q>,
) -> Statement<'q> {
    statement
        .bind(id)
        .bind(status.as_str())
        .bind(found.txt.finding.as_str())
        .bind(&found.txt.seen)
        .bind(found.mx.finding.as_str())
        .bind(&found.mx.seen)
}

impl Store {
    /// Accepts at most one request in `pause` of the owner of a custom domain, with the API token `token`, to check
    /// it. One that was deactivated, and that no Kubernetes object manages, is active again and ends with what the
    /// token comes from.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::TokenEnded`].
    pub async fn request_domain_check(
        &self,
        tenant: Uuid,
        id: Uuid,
        token: Uuid,
        pause: SignedDuration,
        now: Timestamp,
    ) -> Result<CheckRequest, StoreError> {
        let statement = sqlx::query(
            "/* request_domain_check */
            WITH accepted AS (
                UPDATE domain
                SET check_requested_at = $3, active = active OR managed_by = 'api',
                    origin = CASE WHEN active OR managed_by <> 'api' THEN origin ELSE token_origin($6) END
                WHERE id = $2 AND tenant = $1 AND removed_at IS NULL
                  AND (check_requested_at IS NULL OR check_requested_at <= $4 OR check_requested_at >= $5)
                RETURNING id
            )
            SELECT d.check_requested_at, EXISTS (SELECT FROM accepted) AS accepted
            FROM domain d WHERE d.id = $2 AND d.tenant = $1 AND d.removed_at IS NULL",
        )
        .bind(tenant)
        .bind(id)
        .bind(now.to_sqlx())
        .bind((now - pause).to_sqlx())
        // More than clocks of processes differ: the clock was set back.
        .bind((now + pause).to_sqlx())
        .bind(token);
        let request = self.fetch_optional(statement, |row| CheckRequest::from_row(row, pause, now)).await?;
        Ok(request.unwrap_or(CheckRequest::NotFound))
    }

    /// A custom domain; `None` where it is removed.
    pub async fn find_domain_to_check(&self, id: Uuid) -> Result<Option<DomainToCheck>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!(
                "/* find_domain_to_check */ ",
                to_check!("domain"),
                " WHERE d.id = $1 AND d.tenant IS NOT NULL AND d.removed_at IS NULL"
            ))
            .bind(id),
            DomainToCheck::from_row,
        )
        .await
    }

    /// Claims up to `limit` custom domains whose check is due: of each tenant in turn, those longest due. A tenant has
    /// five claimed at most, so that others do not wait for its name servers. No other process claims them for `lease`,
    /// or until the check is recorded.
    pub async fn claim_due_domains(
        &self,
        limit: usize,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<DomainToCheck>, StoreError> {
        self.fetch_all(
            sqlx::query(CLAIM_DUE_DOMAINS)
                .bind(now.to_sqlx())
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                .bind(lease.as_secs_f64())
                .bind(CHECKS_OF_A_TENANT),
            DomainToCheck::from_row,
        )
        .await
    }

    /// How many custom domains are due for a check, and how many are pending; a pending one is checked every
    /// `interval`.
    pub async fn count_domains_to_check(
        &self,
        interval: SignedDuration,
        now: Timestamp,
    ) -> Result<DomainsToCheck, StoreError> {
        let statement = sqlx::query(
            "/* count_domains_to_check */
            SELECT count(*) FILTER (WHERE next_check_at <= $1) AS due,
                   count(*) FILTER (WHERE verify_status = 'pending') AS pending
            FROM domain WHERE next_check_at <= $2",
        );
        self.fetch_one(
            statement.bind(now.to_sqlx()).bind((now + interval).to_sqlx()),
            DomainsToCheck::from_row,
        )
        .await
    }

    /// Records a check of a custom domain that still has the status `status`; else does nothing. `None` as
    /// `next_check_at` changes neither that time nor the claim of the process that checks the domain.
    pub async fn record_domain_check(
        &self,
        id: Uuid,
        status: VerifyStatus,
        found: RecordFindings<'_>,
        failed_checks: i16,
        next_check_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query(concat!(
            "/* record_domain_check */ UPDATE domain SET ",
            found!(),
            ", failed_checks = $7, next_check_at = coalesce($8, next_check_at),
                claimed_until = CASE WHEN $8 IS NULL THEN claimed_until END
            WHERE id = $1 AND verify_status = $2 AND removed_at IS NULL AND active",
        ));
        let next_check_at = next_check_at.map(|at| at.to_sqlx());
        self.execute(with_findings(statement, id, status, found).bind(failed_checks).bind(next_check_at))
            .await
    }

    /// Fails a custom domain that still has the status `status`: it no longer serves, and is checked only on
    /// request. Its mail stays, and can't be read.
    pub async fn fail_custom_domain(
        &self,
        id: Uuid,
        status: VerifyStatus,
        reason: FailureReason,
        found: RecordFindings<'_>,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query(concat!(
            "/* fail_custom_domain */ UPDATE domain SET ",
            found!(),
            ", verify_status = 'failed', failure_reason = $7, serves = false, failed_checks = 0,
                next_check_at = NULL, claimed_until = NULL
            WHERE id = $1 AND verify_status = $2 AND removed_at IS NULL AND active",
        ));
        self.execute(with_findings(statement, id, status, found).bind(reason.as_str())).await
    }

    /// Verifies a custom domain: it serves, and the pending domains of other tenants with its name fail. `displaced`
    /// is the domain that serves the name, if the name servers no longer have its TXT record: it loses the name
    /// with all mailboxes and mail under it. Any other domain that serves the name keeps it.
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
        let answer: String = self
            .fetch_value(
                sqlx::query("/* verify_custom_domain */ SELECT verify_custom_domain($1, $2, $3, $4, $5)")
                    .bind(id)
                    .bind(displaced)
                    .bind(installation_names)
                    .bind(next_check_at.to_sqlx())
                    .bind(now.to_sqlx()),
            )
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
