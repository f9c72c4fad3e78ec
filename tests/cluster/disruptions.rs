//! What happens to the installation under load.

use crate::installation::NodeInstallation;

/// Something that happens, and the wait until all pods are ready again.
pub(crate) struct Disruption {
    /// For the report.
    pub(crate) name: &'static str,
    kind: Kind,
}

enum Kind {
    /// `kubectl rollout restart` of a role's Deployment.
    Restart(&'static str),
    /// `kubectl delete pod --force` of each of a component's pods in turn.
    Kill(&'static str),
    /// `helm upgrade` to the program of `tests/next`, which migrates the schema while former pods serve.
    Upgrade,
    /// `helm rollback` to the former revision, whose program serves over the newer schema.
    Rollback,
    /// `kubectl delete pod`, which gives Postgres the time to stop.
    RestartPostgres,
}

/// In this order.
pub(crate) const DISRUPTIONS: [Disruption; 12] = [
    Disruption { name: "rolling restart of api", kind: Kind::Restart("api") },
    Disruption { name: "rolling restart of ingest", kind: Kind::Restart("ingest") },
    Disruption { name: "rolling restart of worker", kind: Kind::Restart("worker") },
    Disruption { name: "rolling restart of operator", kind: Kind::Restart("operator") },
    Disruption { name: "each pod of api killed", kind: Kind::Kill("api") },
    Disruption { name: "each pod of ingest killed", kind: Kind::Kill("ingest") },
    Disruption { name: "each pod of worker killed", kind: Kind::Kill("worker") },
    Disruption { name: "each pod of operator killed", kind: Kind::Kill("operator") },
    Disruption { name: "helm upgrade", kind: Kind::Upgrade },
    Disruption { name: "helm rollback", kind: Kind::Rollback },
    Disruption { name: "Postgres restarted", kind: Kind::RestartPostgres },
    Disruption { name: "Redis killed", kind: Kind::Kill("redis") },
];

impl Disruption {
    /// Carries it out, and waits until all pods are ready again.
    pub(crate) async fn run(&self, installation: &NodeInstallation) {
        match self.kind {
            Kind::Restart(role) => {
                installation.kubectl(&["rollout", "restart", &format!("deployment/tempmail-{role}")]).await;
            }
            Kind::Kill(component) => {
                for pod in installation.pods(component).await {
                    installation.kubectl(&["delete", "--force", "--grace-period=0", &pod]).await;
                    installation.wait_until_ready().await;
                }
            }
            Kind::Upgrade => {
                installation.upgrade(&["--set", "image.tag=next"]).await;
                let log = installation.migration_log().await;
                assert!(log.contains("the schema is up to date"), "{log}");
            }
            Kind::Rollback => {
                installation.rollback().await;
                let log = installation.migration_log().await;
                assert!(log.contains("newer than this program"), "{log}");
            }
            Kind::RestartPostgres => {
                installation.kubectl(&["delete", "pod/tempmail-postgres-0"]).await;
            }
        }
        installation.wait_until_ready().await;
    }
}
