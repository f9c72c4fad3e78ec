//! Kubernetes objects and the rows they stand for; and which operator may write. What each kind
//! does to its rows is in a file of its own.

/// A statement by which an operator writes: its name, and its text with `(SELECT held FROM epoch)` as a
/// condition of each part that writes. It fails with [`StoreError::Fenced`] unless $1 is the current
/// epoch, also where it finds no row.
macro_rules! under_epoch {
    ($name:literal, $statement:literal) => {
        concat!($name, " WITH epoch AS MATERIALIZED (SELECT hold_epoch($1) AS held)", $statement)
    };
}

mod api_token;
mod custom_domain;
mod mailbox;
mod system_domain;
mod tenant;
mod webhook;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::row::optional_time;
use crate::stream::Snapshot;
use crate::{Store, StoreError};

pub use api_token::{ManagedToken, TokenDeclaration};
pub use custom_domain::CustomDomainDeclaration;
pub use mailbox::{MailboxDeclaration, ManagedMailbox};
pub use system_domain::{ManagedSystemDomain, SystemDomainDeclaration};
pub use tenant::TenantDeclaration;
pub use webhook::{ManagedWebhook, WebhookDeclaration};

/// What an operator that leads writes under. A statement of an earlier leader fails with
/// [`StoreError::Fenced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(pub(crate) i64);

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A tenant.
    Tenant,
    /// A domain of the installation.
    SystemDomain,
    /// A domain of a tenant.
    CustomDomain,
    /// A webhook of a tenant.
    Webhook,
    /// A token of a tenant.
    ApiToken,
    /// A mailbox of a tenant.
    Mailbox,
}

/// Which object it is, and what it said last about its deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceIdentity {
    /// `metadata.uid`.
    pub uid: Uuid,
    /// Its kind.
    pub kind: ResourceKind,
    /// `metadata.namespace`; `None` where the kind has none.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// Whether its row stays when it is deleted.
    pub retained: bool,
}

/// An object that an operator has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Which one it is.
    pub identity: ResourceIdentity,
    /// The id of its row, if it has one.
    pub row_id: Option<Uuid>,
    /// Value of the annotation that asks for a look at DNS, carried out last.
    pub verify_handled: Option<String>,
    /// Value of the annotation that asks for a new secret, carried out last.
    pub rotate_handled: Option<String>,
    /// Value of the annotation that asks for a disabled webhook to be made again, carried out last.
    pub reenable_handled: Option<String>,
    /// Since when the object is gone while its row is not released.
    pub missing_since: Option<Timestamp>,
}

/// What became of a row that an object declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclareOutcome {
    /// It was made.
    Created,
    /// It was there, and is the object's from now on.
    Adopted,
    /// It is the object's, and what the object says.
    Existing,
    /// It was withheld, and begins anew.
    Restored,
}

/// Why an object has no row, or not the one that it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclareError {
    /// A tenant of that name is there.
    NameTaken,
    /// There is no such tenant, or another object manages it.
    NotAdoptable,
    /// Another object manages it.
    ManagedByAnother,
    /// It was made over HTTP, and is not to be adopted.
    NotAdopted,
    /// The row is of another tenant than the object refers to now.
    TenantChanged,
    /// The tenant is suspended or gone.
    TenantDisabled,
    /// The tenant has as many as it may.
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

/// What the answer `word` of a function of the schema means.
fn declare_result(function: &'static str, word: &str) -> Result<DeclareResult, StoreError> {
    Ok(match word {
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
        _ => return Err(StoreError::unknown_word(function, word)),
    })
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Tenant, Self::SystemDomain, Self::CustomDomain, Self::Webhook, Self::ApiToken, Self::Mailbox];

    /// `kind` of the objects, and the word for it in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "Tenant",
            Self::SystemDomain => "SystemDomain",
            Self::CustomDomain => "CustomDomain",
            Self::Webhook => "Webhook",
            Self::ApiToken => "ApiToken",
            Self::Mailbox => "Mailbox",
        }
    }
}

impl Resource {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let uid = row.try_get("uid")?;
        let word: &str = row.try_get("kind")?;
        let kind = ResourceKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or(StoreError::Inconsistent { table: "resource", column: "kind", id: uid })?;
        Ok(Self {
            identity: ResourceIdentity {
                uid,
                kind,
                namespace: row.try_get("namespace")?,
                name: row.try_get("name")?,
                retained: row.try_get("retained")?,
            },
            row_id: row.try_get("row_id")?,
            verify_handled: row.try_get("verify_handled")?,
            rotate_handled: row.try_get("rotate_handled")?,
            reenable_handled: row.try_get("reenable_handled")?,
            missing_since: optional_time(row, "missing_since")?,
        })
    }
}

impl Store {
    /// Begins to lead: from now on every other operator's epoch is over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn acquire_epoch(&self) -> Result<Epoch, StoreError> {
        let epoch =
            sqlx::query_scalar("/* acquire_epoch */ UPDATE operator SET epoch = epoch + 1 RETURNING epoch")
                .fetch_one(self.pool())
                .await?;
        Ok(Epoch(epoch))
    }

    /// Checks that no other operator has begun to lead since.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where one has.
    pub async fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        sqlx::query(under_epoch!("/* check_epoch */", " SELECT held FROM epoch"))
            .bind(epoch.0)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// The object of this uid, if an operator has seen it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_resource(&self, uid: Uuid) -> Result<Option<Resource>, StoreError> {
        let row = sqlx::query("/* find_resource */ SELECT * FROM resource WHERE uid = $1")
            .bind(uid)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(Resource::from_row).transpose()
    }

    /// Records an object of `cluster`, or its present deletion policy. Its row comes later.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_resource(
        &self,
        epoch: Epoch,
        cluster: Uuid,
        identity: &ResourceIdentity,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* record_resource */",
            " INSERT INTO resource (uid, cluster, kind, namespace, name, retained)
              SELECT $2, $3, $4, $5, $6, $7 WHERE (SELECT held FROM epoch)
              ON CONFLICT (uid) DO UPDATE SET retained = excluded.retained, missing_since = NULL"
        ))
        .bind(epoch.0)
        .bind(identity.uid)
        .bind(cluster)
        .bind(identity.kind.as_str())
        .bind(&identity.namespace)
        .bind(&identity.name)
        .bind(identity.retained)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// The objects whose rows changed since the last look; without one there are none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_changed_resources(
        &self,
        last: Option<&Snapshot>,
    ) -> Result<(Vec<ResourceIdentity>, Snapshot), StoreError> {
        let head = self.poll_stream(last).await?;
        if head.changed.is_empty() {
            return Ok((Vec::new(), head.snapshot));
        }
        let rows = sqlx::query("/* list_changed_resources */ SELECT * FROM resource WHERE row_id = ANY ($1)")
            .bind(&head.changed)
            .fetch_all(self.pool())
            .await?;
        let changed: Result<_, StoreError> =
            rows.iter().map(|row| Ok(Resource::from_row(row)?.identity)).collect();
        Ok((changed?, head.snapshot))
    }

    /// The objects of a cluster and kind that operators have seen and not released.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_resources(
        &self,
        cluster: Uuid,
        kind: ResourceKind,
    ) -> Result<Vec<Resource>, StoreError> {
        let rows =
            sqlx::query("/* list_resources */ SELECT * FROM resource WHERE cluster = $1 AND kind = $2")
                .bind(cluster)
                .bind(kind.as_str())
                .fetch_all(self.pool())
                .await?;
        rows.iter().map(Resource::from_row).collect()
    }

    /// The objects that had the kind, namespace and name of `successor` before it, which operators have seen
    /// and not released; without those whose rows are of another tenant than `tenant`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_predecessors(
        &self,
        cluster: Uuid,
        successor: &ResourceIdentity,
        tenant: Option<Uuid>,
    ) -> Result<Vec<Resource>, StoreError> {
        let rows = sqlx::query(
            "/* list_predecessors */
            SELECT r.* FROM resource r
              LEFT JOIN domain d ON d.id = r.row_id
              LEFT JOIN webhook w ON w.id = r.row_id
              LEFT JOIN api_token k ON k.id = r.row_id
              LEFT JOIN mailbox b ON b.id = r.row_id
            WHERE r.cluster = $1 AND r.kind = $2 AND r.namespace IS NOT DISTINCT FROM $3 AND r.name = $4
              AND r.uid <> $5 AND coalesce(d.tenant, w.tenant, k.tenant, b.tenant, $6) IS NOT DISTINCT FROM $6",
        )
        .bind(cluster)
        .bind(successor.kind.as_str())
        .bind(&successor.namespace)
        .bind(&successor.name)
        .bind(successor.uid)
        .bind(tenant)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(Resource::from_row).collect()
    }

    /// Records since when an object is gone, or that it is there (`None`).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_missing_since(
        &self,
        epoch: Epoch,
        uid: Uuid,
        since: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* record_missing_since */",
            " UPDATE resource SET missing_since = $3 WHERE (SELECT held FROM epoch) AND uid = $2"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(since.map(|at| at.to_sqlx()))
        .execute(self.pool())
        .await?;
        Ok(())
    }
}
