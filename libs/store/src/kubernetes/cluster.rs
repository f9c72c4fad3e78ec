//! The clusters whose operators use the database, and what one that is gone leaves to others. Each has an epoch: every
//! statement by which an operator writes locks its epoch first, so that an operator that lost the lead can't write any more.

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::{Statement, Store};
use crate::row::{optional_time, time};

/// A cluster is released without force once its operator was not seen for this long (`release_cluster` in SQL).
pub const CLUSTER_SILENT_AFTER: Duration = Duration::from_secs(600);

/// The epoch under which a leading operator writes. A statement under an earlier one fails with
/// [`StoreError::Fenced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(i64);

/// The text of a statement that locks the epoch `$1` first, for the object `$2`: a comment with its name, and its text with
/// `(SELECT locked FROM epoch)` as a condition of each part that writes. It fails with [`StoreError::Fenced`]
/// unless `$1` is the current epoch, also where it finds no row.
macro_rules! fenced {
    ($name:literal, $statement:expr) => {
        concat!($name, " WITH epoch AS MATERIALIZED (SELECT lock_epoch($1, $2) AS locked)", $statement)
    };
}

/// The text of a fenced statement that activates the row `$3` of a table if it is still that of the object `$2`.
macro_rules! activate_row {
    ($name:literal, $table:literal) => {
        fenced!(
            $name,
            concat!(
                " UPDATE ",
                $table,
                " t SET active = true FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND r.row_id = $3 AND t.id = $3"
            )
        )
    };
}

pub(super) use {activate_row, fenced};

/// A cluster whose operator leads or led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KubernetesCluster {
    /// `metadata.uid` of its namespace kube-system.
    pub id: Uuid,
    /// When its operator was last known to lead, of Postgres' clock.
    pub heartbeat_at: Timestamp,
    /// Since when objects of other clusters may adopt its rows.
    pub released_at: Option<Timestamp>,
    /// How many objects of it are recorded.
    pub objects: i64,
}

/// What came of the release of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterRelease {
    /// The rows of so many objects are released.
    Released(i64),
    /// No operator of such a cluster ever led.
    NotFound,
    /// It was released before.
    AlreadyReleased,
    /// Its operator was seen at this time, less than [`CLUSTER_SILENT_AFTER`] ago.
    Alive(Timestamp),
}

/// What came of admitting a released cluster again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAdmission {
    /// Its operator may lead again.
    Admitted,
    /// No operator of such a cluster ever led.
    NotFound,
    /// It is not released.
    NotReleased,
}

/// An object that has a row which another object declares, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowHolder {
    /// Its cluster.
    pub cluster: Uuid,
    /// Whether the cluster is released, so that an object with the same namespace and name adopts the row.
    pub released: bool,
    /// Its namespace; `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Epoch {
    /// A statement with the epoch and the uid of an object, if there is one, as its first two arguments.
    pub(super) fn statement(self, text: &'static str, uid: impl Into<Option<Uuid>>) -> Statement<'static> {
        let uid: Option<Uuid> = uid.into();
        sqlx::query(text).bind(self.0).bind(uid)
    }
}

impl KubernetesCluster {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            heartbeat_at: time(row, "heartbeat_at")?,
            released_at: optional_time(row, "released_at")?,
            objects: row.try_get("objects")?,
        })
    }
}

impl ClusterRelease {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(match row.try_get("o_outcome")? {
            "released" => Self::Released(row.try_get("o_objects")?),
            "not_found" => Self::NotFound,
            "already_released" => Self::AlreadyReleased,
            "alive" => Self::Alive(time(row, "o_heartbeat_at")?),
            word => return Err(StoreError::unknown_word("release_cluster", word)),
        })
    }
}

impl ClusterAdmission {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(match row.try_get(0)? {
            "admitted" => Self::Admitted,
            "not_found" => Self::NotFound,
            "not_released" => Self::NotReleased,
            word => return Err(StoreError::unknown_word("admit_cluster", word)),
        })
    }
}

impl RowHolder {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            cluster: row.try_get("cluster")?,
            released: row.try_get("released")?,
            namespace: row.try_get("namespace")?,
            name: row.try_get("name")?,
        })
    }
}

impl Store {
    /// Starts a new epoch of a cluster, which ends that of every other operator of it; `None`: the cluster is released, and
    /// no operator of it may lead.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn acquire_epoch(&self, cluster: Uuid) -> Result<Option<Epoch>, StoreError> {
        let statement = sqlx::query("/* acquire_epoch */ SELECT acquire_epoch($1)").bind(cluster);
        let epoch: Option<i64> = self.fetch_value(statement).await?;
        Ok(epoch.map(Epoch))
    }

    /// Checks that the epoch is still the current one.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where it is not.
    pub async fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        let statement = "/* check_epoch */ SELECT lock_epoch($1, NULL)";
        self.execute(sqlx::query(statement).bind(epoch.0)).await
    }

    /// Records that the operator of the epoch still leads in its cluster.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where it does not.
    pub async fn record_heartbeat(&self, epoch: Epoch) -> Result<(), StoreError> {
        let statement = "/* record_heartbeat */ SELECT record_heartbeat($1)";
        self.execute(sqlx::query(statement).bind(epoch.0)).await
    }

    /// The clusters, those that were seen last first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_clusters(&self) -> Result<Vec<KubernetesCluster>, StoreError> {
        let statement = sqlx::query(
            "/* list_clusters */
            SELECT c.id, c.heartbeat_at, c.released_at,
                   (SELECT count(*) FROM resource r WHERE r.cluster = c.id) AS objects
            FROM cluster c ORDER BY c.heartbeat_at DESC, c.id",
        );
        self.fetch_all(statement, KubernetesCluster::from_row).await
    }

    /// Releases the rows of a cluster: its operator is fenced out, its tokens are revoked, its webhooks, mailboxes, custom
    /// domains and tenants are inactive until objects of another cluster with the same tenant, kind, namespace and name
    /// adopt them. Refused while its operator lives, unless `force`. Needs the login of the schema's owner.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_cluster(
        &self,
        cluster: Uuid,
        force: bool,
        now: Timestamp,
    ) -> Result<ClusterRelease, StoreError> {
        let statement = sqlx::query(
            "/* release_cluster */
            SELECT o_outcome, o_heartbeat_at, o_objects FROM release_cluster($1, $2, $3)",
        );
        let statement = statement.bind(cluster).bind(force).bind(now.to_sqlx());
        self.fetch_one(statement, ClusterRelease::from_row).await
    }

    /// Lets the operator of a released cluster lead again. What was not adopted meanwhile is its own again. Needs the login
    /// of the schema's owner.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn admit_cluster(&self, cluster: Uuid) -> Result<ClusterAdmission, StoreError> {
        let statement = sqlx::query("/* admit_cluster */ SELECT admit_cluster($1)").bind(cluster);
        self.fetch_one(statement, ClusterAdmission::from_row).await
    }

    /// Gives the object `uid`, which has no row, that of the object `former` of a released cluster. The row stays inactive.
    /// Returns the id of the row; `None` if `former` has none to give.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn adopt_released(
        &self,
        epoch: Epoch,
        uid: Uuid,
        former: Uuid,
    ) -> Result<Option<Uuid>, StoreError> {
        let statement = epoch.statement("/* adopt_released */ SELECT adopt_released($1, $2, $3)", uid);
        self.fetch_value(statement.bind(former)).await
    }

    /// Does what [`Self::adopt_released`] does for a webhook, and gives it another secret, sealed for it, which is not yet
    /// delivered to its owner.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn adopt_released_webhook(
        &self,
        epoch: Epoch,
        uid: Uuid,
        former: Uuid,
        secret: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = epoch
            .statement("/* adopt_released_webhook */ SELECT adopt_released_webhook($1, $2, $3, $4, $5)", uid);
        self.execute(statement.bind(former).bind(secret).bind(now.to_sqlx())).await
    }

    /// The object other than `uid`, in any cluster, that has what an object of this kind declares: `declared` is the name
    /// of the tenant or domain, or the address of the mailbox; `tenant` is the name of the tenant that the object refers to,
    /// if it refers to one. Rows of other tenants are not looked at.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_row_holder(
        &self,
        uid: Uuid,
        kind: &str,
        declared: &str,
        tenant: Option<&str>,
    ) -> Result<Option<RowHolder>, StoreError> {
        let statement = sqlx::query(
            "/* find_row_holder */
            SELECT r.cluster, r.namespace, r.name,
                   EXISTS (SELECT FROM cluster c WHERE c.id = r.cluster AND c.released_at IS NOT NULL) AS released
            FROM resource r
            WHERE r.uid <> $1 AND r.row_id = CASE $2
                WHEN 'Tenant' THEN (SELECT t.id FROM tenant t WHERE t.name = $3)
                WHEN 'SystemDomain' THEN
                    (SELECT d.id FROM domain d WHERE d.name = $3 AND d.serves AND d.tenant IS NULL)
                WHEN 'CustomDomain' THEN
                    (SELECT d.id FROM domain d JOIN tenant t ON t.id = d.tenant
                      WHERE t.name = $4 AND d.name = $3 AND d.removed_at IS NULL)
                WHEN 'Mailbox' THEN
                    (SELECT b.id FROM tenant t JOIN mailbox b ON b.tenant = t.id JOIN domain d ON d.id = b.domain
                      WHERE t.name = $4 AND b.removed_at IS NULL AND b.local_part = split_part($3, '@', 1)
                        AND d.name = split_part($3, '@', 2))
                END",
        );
        let statement = statement.bind(uid).bind(kind).bind(declared).bind(tenant);
        self.fetch_optional(statement, RowHolder::from_row).await
    }
}
