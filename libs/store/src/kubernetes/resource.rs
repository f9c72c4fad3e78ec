//! The Kubernetes objects that an operator has seen (table `resource`), the rows that they manage, and what comes of
//! declaring one.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::cluster::{Epoch, fenced};
use crate::error::StoreError;
use crate::mail::changes::ChangeSnapshot;
use crate::pool::Store;
use crate::row::optional_time;

/// The identity of an object, and its last known deletion policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceIdentity {
    /// `metadata.uid`.
    pub uid: Uuid,
    /// Its kind, as its manifest names it.
    pub kind: String,
    /// `metadata.namespace`; `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// `metadata.uid` of the namespace; `None` for a cluster-scoped kind, or where it is not known.
    pub namespace_uid: Option<Uuid>,
    /// `metadata.name`.
    pub name: String,
    /// Whether its row stays when the object is deleted.
    pub retained: bool,
}

/// An object that an operator has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its identity.
    pub identity: ResourceIdentity,
    /// Its cluster: `metadata.uid` of the namespace kube-system.
    pub cluster: Uuid,
    /// The id of its row, if it has one.
    pub row_id: Option<Uuid>,
    /// The tenant that its row belonged to last; `None` for kinds without one, and where there was no row yet.
    pub tenant: Option<Uuid>,
    /// Value of the annotation that requested a DNS check, handled last.
    pub verify_handled: Option<String>,
    /// Value of the annotation that requested a new secret, handled last.
    pub rotate_handled: Option<String>,
    /// Value of the annotation that requested re-enabling a webhook, handled last.
    pub reenable_handled: Option<String>,
    /// Since when the object no longer exists while its row is not released.
    pub missing_since: Option<Timestamp>,
}

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

/// SQL for the columns of a resource `r` that [`Resource`] reads.
macro_rules! resource_columns {
    () => {
        "r.uid, r.cluster, r.kind, r.namespace,
         (SELECT o.namespace_uid FROM origin o WHERE o.uid = r.uid) AS namespace_uid, r.name, r.retained, r.row_id, r.tenant,
         r.verify_handled, r.rotate_handled, r.reenable_handled, r.missing_since"
    };
}

impl ResourceIdentity {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            uid: row.try_get("uid")?,
            kind: row.try_get("kind")?,
            namespace: row.try_get("namespace")?,
            namespace_uid: row.try_get("namespace_uid")?,
            name: row.try_get("name")?,
            retained: row.try_get("retained")?,
        })
    }
}

impl Resource {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            identity: ResourceIdentity::from_row(row)?,
            cluster: row.try_get("cluster")?,
            row_id: row.try_get("row_id")?,
            tenant: row.try_get("tenant")?,
            verify_handled: row.try_get("verify_handled")?,
            rotate_handled: row.try_get("rotate_handled")?,
            reenable_handled: row.try_get("reenable_handled")?,
            missing_since: optional_time(row, "missing_since")?,
        })
    }
}

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

impl Store {
    /// The object of this uid, if an operator has seen it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_resource(&self, uid: Uuid) -> Result<Option<Resource>, StoreError> {
        let statement =
            concat!("/* find_resource */ SELECT ", resource_columns!(), " FROM resource r WHERE r.uid = $1");
        let statement = sqlx::query(statement).bind(uid);
        self.fetch_optional(statement, Resource::from_row).await
    }

    /// Records an object of `cluster`, or its current deletion policy; it exists. Its row is declared later.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_resource(
        &self,
        epoch: Epoch,
        cluster: Uuid,
        identity: &ResourceIdentity,
    ) -> Result<(), StoreError> {
        let statement = epoch.statement(
            fenced!(
                "/* record_resource */",
                ", of_namespace AS (
                    INSERT INTO origin (uid, cluster, namespace, namespace_uid)
                    SELECT $2, $3, $5, $8 WHERE (SELECT locked FROM epoch) AND $5 IS NOT NULL
                    ON CONFLICT (uid) DO UPDATE
                    SET namespace_uid = coalesce(excluded.namespace_uid, origin.namespace_uid)
                  )
                  INSERT INTO resource (uid, cluster, kind, namespace, name, retained)
                  SELECT $2, $3, $4, $5, $6, $7 WHERE (SELECT locked FROM epoch)
                  ON CONFLICT (uid) DO UPDATE SET retained = excluded.retained, missing_since = NULL"
            ),
            identity.uid,
        );
        self.execute(
            statement
                .bind(cluster)
                .bind(&identity.kind)
                .bind(&identity.namespace)
                .bind(&identity.name)
                .bind(identity.retained)
                .bind(identity.namespace_uid),
        )
        .await
    }

    /// The objects whose rows changed since the snapshot `last`, and the next snapshot; none without `last`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_changed_resources(
        &self,
        last: Option<&ChangeSnapshot>,
    ) -> Result<(Vec<ResourceIdentity>, ChangeSnapshot), StoreError> {
        let head = self.poll_stream(last).await?;
        if head.changed.is_empty() {
            return Ok((Vec::new(), head.snapshot));
        }
        let statement = concat!(
            "/* list_changed_resources */ SELECT ",
            resource_columns!(),
            " FROM resource r WHERE r.row_id = ANY ($1)"
        );
        let statement = sqlx::query(statement).bind(&head.changed);
        Ok((self.fetch_all(statement, ResourceIdentity::from_row).await?, head.snapshot))
    }

    /// The objects of a cluster and kind that operators have seen and not released.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_resources(&self, cluster: Uuid, kind: &str) -> Result<Vec<Resource>, StoreError> {
        let statement = concat!(
            "/* list_resources */ SELECT ",
            resource_columns!(),
            " FROM resource r WHERE r.cluster = $1 AND r.kind = $2"
        );
        let statement = sqlx::query(statement).bind(cluster).bind(kind);
        self.fetch_all(statement, Resource::from_row).await
    }

    /// The objects that had the kind, namespace and name of `successor` before it and were not released, in its
    /// cluster first, then in clusters that are released; without those whose rows belong to another tenant than
    /// `tenant`, and without those of released clusters whose domain or address is not `declared`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_predecessors(
        &self,
        cluster: Uuid,
        successor: &ResourceIdentity,
        tenant: Option<Uuid>,
        declared: Option<&str>,
    ) -> Result<Vec<Resource>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* list_predecessors */ SELECT ",
            resource_columns!(),
            " FROM resource r
              LEFT JOIN domain d ON d.id = r.row_id
              LEFT JOIN webhook w ON w.id = r.row_id
              LEFT JOIN api_token k ON k.id = r.row_id
              LEFT JOIN mailbox b ON b.id = r.row_id
              LEFT JOIN domain bd ON bd.id = b.domain
            WHERE r.cluster = ANY (array_append(
                      ARRAY(SELECT c.id FROM cluster c WHERE c.released_at IS NOT NULL), $1))
              AND r.kind = $2 AND r.namespace IS NOT DISTINCT FROM $3 AND r.name = $4
              AND r.uid <> $5 AND coalesce(d.tenant, w.tenant, k.tenant, b.tenant, $6) IS NOT DISTINCT FROM $6
              AND (r.cluster = $1 OR coalesce(d.name, b.local_part || '@' || bd.name, $7) IS NOT DISTINCT FROM $7)
            ORDER BY r.cluster = $1 DESC",
        ))
        .bind(cluster)
        .bind(&successor.kind)
        .bind(&successor.namespace)
        .bind(&successor.name)
        .bind(successor.uid)
        .bind(tenant)
        .bind(declared);
        self.fetch_all(statement, Resource::from_row).await
    }

    /// Records that an object no longer exists since `now`, if that is new. Its row is kept; what it is a credential for
    /// ends: a token with what was made with it over HTTP, a webhook, and the password of a mailbox.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn record_missing(&self, epoch: Epoch, uid: Uuid, now: Timestamp) -> Result<(), StoreError> {
        let statement = epoch.statement("/* record_missing */ SELECT record_missing($1, $2, $3)", uid);
        self.execute(statement.bind(now.to_sqlx())).await
    }

    /// Records that an object that was missing exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_present(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        self.execute(epoch.statement(
            fenced!(
                "/* record_present */",
                " UPDATE resource SET missing_since = NULL WHERE (SELECT locked FROM epoch) AND uid = $2"
            ),
            uid,
        ))
        .await
    }
}
