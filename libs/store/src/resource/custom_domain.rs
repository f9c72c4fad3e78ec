//! Custom domains as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::custom_domain::CustomDomain;
use crate::{Store, StoreError};

/// What an object says of its domain.
#[derive(Debug, Clone, Copy)]
pub struct CustomDomainDeclaration<'a> {
    /// Whose it is.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: &'a str,
    /// What its TXT record is to carry.
    pub token: &'a str,
    /// Whether one that the tenant made over HTTP is taken over.
    pub adopt: bool,
    /// Names of the installation itself, which count as system domains.
    pub installation_names: &'a [String],
    /// When a new one fails unless it is verified.
    pub deadline: Timestamp,
    /// When the records of a new one are looked for first.
    pub next_check_at: Timestamp,
}

impl Store {
    /// The domain of the object `uid`, of any tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_custom_domain(&self, uid: Uuid) -> Result<Option<CustomDomain>, StoreError> {
        let row = sqlx::query(
            "/* find_managed_custom_domain */
            SELECT d.* FROM resource r JOIN domain d ON d.id = r.row_id WHERE r.uid = $1 AND d.removed_at IS NULL",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        row.as_ref().map(CustomDomain::from_row).transpose()
    }

    /// Makes the domain of the object `uid`; one that was withheld is pending anew.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_custom_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        domain: CustomDomainDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let word: String = sqlx::query_scalar(
            "/* declare_custom_domain */
            SELECT declare_custom_domain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new_id(now))
        .bind(domain.tenant)
        .bind(domain.name)
        .bind(domain.token)
        .bind(domain.adopt)
        .bind(domain.installation_names)
        .bind(domain.deadline.to_sqlx())
        .bind(domain.next_check_at.to_sqlx())
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_custom_domain", &word)
    }

    /// Begins the verification of the object's domain anew if it failed, with another `deadline`,
    /// and records what `requested` it: the annotation's value.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn restart_domain_verification(
        &self,
        epoch: Epoch,
        uid: Uuid,
        requested: &str,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* restart_domain_verification */",
            ", handled AS (
                UPDATE resource SET verify_handled = $3 WHERE (SELECT held FROM epoch) AND uid = $2
              )
              UPDATE domain d SET verify_status = 'pending', failure_reason = NULL, failed_checks = 0,
                                  deadline = $4, next_check_at = $5, claimed_until = NULL
              FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND d.id = r.row_id AND d.verify_status = 'failed'
                AND d.removed_at IS NULL AND d.active"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(requested)
        .bind(deadline.to_sqlx())
        .bind(now.to_sqlx())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Takes the object's domain out of service and keeps all it has: its object is no longer
    /// accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn deactivate_custom_domain(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* deactivate_custom_domain */",
            " UPDATE domain d SET active = false, verify_status = 'pending', failure_reason = NULL, serves = false,
                                  next_check_at = NULL, claimed_until = NULL
              FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND d.id = r.row_id AND d.active
                AND d.removed_at IS NULL"
        ))
        .bind(epoch.0)
        .bind(uid)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Releases the object's domain: its tenant manages it over HTTP from then on (`retained`), or
    /// it is removed with its mailboxes and mail.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_custom_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        retained: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("/* release_custom_domain */ SELECT release_custom_domain($1, $2, $3, $4)")
            .bind(epoch.0)
            .bind(uid)
            .bind(retained)
            .bind(now.to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }
}
