//! `tempmail cluster`

use clap::Subcommand;
use serde_json::{Value, json};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{
    CLUSTER_SILENT_AFTER, ClusterAdmission, ClusterRelease, KubernetesCluster, SchemaDefinition,
};
use uuid::Uuid;

use super::{AdminArgs, Database, explain, explain_owner};
use crate::command::output;

/// Subcommands of `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// List the clusters whose operators use the database
    List,
    /// Release the resources of a lost cluster, so that another cluster can adopt them
    ///
    /// Needs the login of `migrate`. An operator that still runs in the cluster is locked out. The tokens of its objects are
    /// revoked; their webhooks, mailboxes, custom domains and tenants are inactive until objects of another cluster with the
    /// same tenant, kind, namespace and name adopt them, with new tokens, passwords and webhook secrets. Mail is kept.
    Release {
        /// Uid of the cluster's namespace kube-system
        #[arg(value_name = "UID")]
        cluster: Uuid,
        /// Release the cluster although its operator was seen in the last 10 minutes
        #[arg(long)]
        force: bool,
    },
    /// Let the operator of a released cluster work again
    ///
    /// Needs the login of `migrate`. What no other cluster has adopted is the cluster's again, with new tokens, passwords
    /// and webhook secrets.
    Admit {
        /// Uid of the cluster's namespace kube-system
        #[arg(value_name = "UID")]
        cluster: Uuid,
    },
}

/// Runs the command and prints the result.
pub(crate) async fn run(args: AdminArgs<ClusterCommand>, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let (database, json) = (args.database.connect(schema).await?, args.json);
    match args.command {
        ClusterCommand::List => list(&database, json).await,
        ClusterCommand::Release { cluster, force } => release(&database, cluster, force, json).await,
        ClusterCommand::Admit { cluster } => admit(&database, cluster, json).await,
    }
}

async fn list(database: &Database, json: bool) -> anyhow::Result<()> {
    let clusters = database.store.list_clusters().await.map_err(explain)?;
    if json {
        return output::json(&json!({"clusters": clusters.iter().map(record).collect::<Vec<_>>()}));
    }
    let rows: Vec<_> = clusters.iter().map(row).collect();
    output::table(["CLUSTER", "LAST SEEN", "RELEASED", "OBJECTS"], &rows)
}

async fn release(database: &Database, cluster: Uuid, force: bool, json: bool) -> anyhow::Result<()> {
    let released = database.store.release_cluster(cluster, force, database.now).await;
    match released.map_err(explain_owner)? {
        ClusterRelease::Released(objects) if json => {
            output::json(&json!({"cluster": cluster, "released": true, "objects": objects}))
        }
        ClusterRelease::Released(objects) => output::line(&format!(
            "released {cluster}: objects of another cluster with the same tenant, kind, namespace and name now \
             adopt what its {objects} objects had"
        )),
        ClusterRelease::NotFound => Err(not_found(cluster)),
        ClusterRelease::AlreadyReleased => anyhow::bail!("the cluster {cluster} is released already"),
        ClusterRelease::Alive(seen_at) => anyhow::bail!(
            "the operator of the cluster {cluster} was seen at {}, less than {} minutes ago: stop it and wait, or \
             use --force if the cluster is gone",
            timestamp(seen_at),
            CLUSTER_SILENT_AFTER.as_secs() / 60,
        ),
    }
}

async fn admit(database: &Database, cluster: Uuid, json: bool) -> anyhow::Result<()> {
    match database.store.admit_cluster(cluster).await.map_err(explain_owner)? {
        ClusterAdmission::Admitted if json => output::json(&json!({"cluster": cluster, "released": false})),
        ClusterAdmission::Admitted => {
            output::line(&format!("admitted {cluster}: its operator may work again"))
        }
        ClusterAdmission::NotFound => Err(not_found(cluster)),
        ClusterAdmission::NotReleased => anyhow::bail!("the cluster {cluster} is not released"),
    }
}

fn not_found(cluster: Uuid) -> anyhow::Error {
    anyhow::anyhow!("no operator of a cluster {cluster} has used this database: see `tempmail cluster list`")
}

fn row(cluster: &KubernetesCluster) -> [String; 4] {
    [
        cluster.id.to_string(),
        timestamp(cluster.heartbeat_at),
        cluster.released_at.map_or_else(|| "-".to_owned(), timestamp),
        cluster.objects.to_string(),
    ]
}

fn record(cluster: &KubernetesCluster) -> Value {
    json!({
        "cluster": cluster.id,
        "heartbeat_at": timestamp(cluster.heartbeat_at),
        "released_at": cluster.released_at.map(timestamp),
        "objects": cluster.objects,
    })
}
