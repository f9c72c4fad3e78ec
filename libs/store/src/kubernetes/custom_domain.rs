//! Custom domains as Kubernetes objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::cluster::{Epoch, fenced};
use super::resource::{DeclareResult, declare_result};
use crate::domains::custom::{CustomDomain, custom_domain_columns};
use crate::error::StoreError;
use crate::pool::Store;

/// The custom domain that an object declares.
#[derive(Debug, Clone, Copy)]
pub struct CustomDomainDeclaration<'a> {
    /// Its tenant.
    pub tenant: Uuid,
    /// Its name, as A-labels.
    pub name: &'a str,
    /// Expected value of its TXT record.
    pub token: &'a str,
    /// Whether to adopt a domain that the tenant created over HTTP.
    pub adopt: bool,
    /// Names of the installation itself, which count as system domains.
    pub installation_names: &'a [String],
    /// When a new domain fails unless it is verified.
    pub deadline: Timestamp,
    /// When a new domain is checked first.
    pub next_check_at: Timestamp,
}

impl Store {
    /// The custom domain of the object `uid`, of any tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_custom_domain(&self, uid: Uuid) -> Result<Option<CustomDomain>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* find_managed_custom_domain */ SELECT ",
            custom_domain_columns!(),
            " FROM resource r JOIN domain d ON d.id = r.row_id WHERE r.uid = $1 AND d.removed_at IS NULL",
        ));
        self.fetch_optional(statement.bind(uid), CustomDomain::from_row).await
    }

    /// Creates the custom domain of the object `uid`; one that was deactivated becomes pending again.
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
        let statement = epoch.statement(
            "/* declare_custom_domain */
            SELECT declare_custom_domain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            uid,
        );
        let statement = statement
            .bind(new_id(now))
            .bind(domain.tenant)
            .bind(domain.name)
            .bind(domain.token)
            .bind(domain.adopt)
            .bind(domain.installation_names)
            .bind(domain.deadline.to_sqlx())
            .bind(domain.next_check_at.to_sqlx())
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_custom_domain", row)).await
    }

    /// Restarts the verification of the object's domain with another `deadline` if it failed, and records
    /// `requested`, the value of the annotation, as handled.
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
        let statement = epoch.statement(
            fenced!(
                "/* restart_domain_verification */",
                ", handled AS (
                    UPDATE resource SET verify_handled = $3 WHERE (SELECT locked FROM epoch) AND uid = $2
                  )
                  UPDATE domain d SET verify_status = 'pending', failure_reason = NULL, failed_checks = 0,
                                      deadline = $4, next_check_at = $5, claimed_until = NULL
                  FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND d.id = r.row_id
                    AND d.verify_status = 'failed' AND d.removed_at IS NULL AND d.active"
            ),
            uid,
        );
        self.execute(statement.bind(requested).bind(deadline.to_sqlx()).bind(now.to_sqlx())).await
    }

    /// Takes the object's domain out of service, because its object is no longer accepted. Its mailboxes and
    /// mail stay.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn deactivate_custom_domain(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        self.execute(epoch.statement(
            fenced!(
                "/* deactivate_custom_domain */",
                " UPDATE domain d SET active = false, verify_status = 'pending', failure_reason = NULL,
                                      serves = false, next_check_at = NULL, claimed_until = NULL
                  FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND d.id = r.row_id AND d.active
                    AND d.removed_at IS NULL"
            ),
            uid,
        ))
        .await
    }

    /// Releases the object's domain: its tenant manages it over HTTP from now on (`retained`), or it is removed
    /// with its mailboxes and mail. Unless one of the Tenants `granting`, by uid, declares its tenant, which is not
    /// suspended, it is the tenant's and inactive instead.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_custom_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        retained: bool,
        granting: &[Uuid],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = epoch
            .statement("/* release_custom_domain */ SELECT release_custom_domain($1, $2, $3, $4, $5)", uid);
        self.execute(statement.bind(retained).bind(granting).bind(now.to_sqlx())).await
    }
}
