//! What the documentation says about a release of the chart, done with one. The cluster has no node: tests end the pods.

use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::{Namespace, program, unique_name};
use tempmail_tests::wait::eventually;

use super::documentation::{commands_of, run};

const INSTALL: &str = include_str!("../../../docs/install.md");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Values without objects that other tests would notice, and a login of the migration's own.
const VALUES: &str = "--set migration.backoffLimit=0,roles.aggregate=false,admissionPolicies.operatorSecrets=false,\
    admissionPolicies.expiredTokens=false,postgres.logins.migrate.existingSecret=owner,postgres.logins.migrate.key=uri";
const ROLES: [&str; 4] = ["api", "ingest", "worker", "operator"];

/// A release in a namespace of its own.
struct Release {
    cluster: &'static Cluster,
    namespace: Namespace,
    name: String,
    /// What `helm install` printed.
    notes: String,
}

impl Release {
    async fn install() -> Self {
        let cluster = Cluster::shared().await;
        let (namespace, name) = (cluster.namespace(&[]).await, unique_name("mail"));
        let mut release = Self { cluster, namespace, name, notes: String::new() };
        release.notes = release
            .paste("helm install tempmail charts/tempmail --namespace tempmail-system --values values.yaml")
            .await;
        release
    }

    /// Runs commands of the documentation on this release, and returns what they print.
    async fn paste(&self, commands: &str) -> String {
        let commands = commands
            .replace("tempmail-system", self.namespace.name())
            .replace("deployment/tempmail-", &format!("deployment/{}-", self.name))
            .replace(" tempmail charts/tempmail", &format!(" {} charts/tempmail", self.name))
            .replace("--values values.yaml", VALUES);
        let cluster = self.cluster;
        tokio::task::spawn_blocking(move || run(cluster, &commands)).await.expect("the commands succeed")
    }

    /// The Job of the migration.
    async fn migration(&self) -> Job {
        let jobs: Api<Job> = self.namespace.api();
        let ours = ListParams::default().labels("app.kubernetes.io/component=migrate");
        let mut found = jobs.list(&ours).await.unwrap().items;
        assert_eq!(found.len(), 1, "there is one");
        found.remove(0)
    }

    /// Ends the pod of a Job in this phase, and returns it.
    async fn end_pod(&self, job: &str, phase: &str) -> Pod {
        let pods: Api<Pod> = self.namespace.api();
        let of_job = ListParams::default().labels(&format!("job-name={job}"));
        let pod = eventually("the pod of a Job", || async {
            pods.list(&of_job).await.ok()?.items.into_iter().next()
        })
        .await;
        let status = Patch::Merge(json!({ "status": { "phase": phase } }));
        let name = pod.metadata.name.as_deref().unwrap();
        pods.patch_status(name, &PatchParams::default(), &status).await.unwrap();
        pod
    }

    /// How many pods the Deployments of the roles are to have.
    async fn replicas(&self) -> [Option<i32>; 4] {
        let deployments: Api<Deployment> = self.namespace.api();
        let mut replicas = [None; 4];
        for (role, replicas) in ROLES.iter().zip(&mut replicas) {
            let deployment = deployments.get(&format!("{}-{role}", self.name)).await.unwrap();
            *replicas = deployment.spec.unwrap().replicas;
        }
        replicas
    }
}

impl Drop for Release {
    /// Its ClusterRoles are in no namespace.
    fn drop(&mut self) {
        let mut helm = Command::new(program("helm"));
        helm.args(["uninstall", &self.name, "--namespace", self.namespace.name()]);
        let _ = helm.env("KUBECONFIG", self.cluster.kubeconfig()).output();
    }
}

fn has_failed(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Failed" && condition.status == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_after_a_failed_migration_make_its_job_again() {
    let release = Release::install().await;
    let name = release.migration().await.metadata.name.unwrap();
    assert!(release.notes.contains(&format!("delete job {name}\n")), "{}", release.notes);
    release.end_pod(&name, "Failed").await;
    let failed = eventually("the Job fails", || async {
        let job = release.migration().await;
        has_failed(&job).then_some(job)
    })
    .await;

    // The Secret was corrected, and the values are the same.
    let commands = commands_of(INSTALL, "delete jobs --selector app.kubernetes.io/component=migrate");
    let (_, upgrade) = commands.split_once('\n').unwrap();
    release.paste(upgrade).await;
    assert_eq!(release.migration().await.metadata.uid, failed.metadata.uid, "an upgrade alone is not enough");

    release.paste(commands).await;
    let again = release.migration().await;
    assert_eq!(again.metadata.name, failed.metadata.name);
    assert!(again.metadata.uid != failed.metadata.uid && !has_failed(&again), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_after_a_restore_run_a_job_while_no_role_runs() {
    let release = Release::install().await;
    assert_eq!(release.replicas().await, [Some(2); 4]);
    release.paste(commands_of(OPERATIONS, "scale --replicas=0")).await;
    assert_eq!(release.replicas().await, [Some(0); 4]);
    let pods: Api<Pod> = release.namespace.api();
    let is_migration = |pod: &Pod| {
        pod.metadata.labels.as_ref().is_some_and(|labels| labels["app.kubernetes.io/component"] == "migrate")
    };
    // Those of an installation this young may be made, and deleted, a moment later.
    eventually("the pods of the roles are gone", || async {
        let left = pods.list(&ListParams::default()).await.ok()?.items;
        left.iter().all(is_migration).then_some(())
    })
    .await;

    let commands = commands_of(OPERATIONS, "\"restored\"]");
    // A pod that ran on no node has no log.
    let without_log: Vec<&str> = commands.lines().filter(|line| !line.contains(" logs ")).collect();
    assert_eq!(without_log.len() + 1, commands.lines().count());
    let without_log = without_log.join("\n");
    let (_, pod) =
        tokio::join!(release.paste(&without_log), release.end_pod("tempmail-restored", "Succeeded"));

    assert!(is_migration(&pod), "the NetworkPolicy of the migration is for it: {pod:?}");
    let (own, migration) =
        (pod.spec.unwrap(), release.migration().await.spec.unwrap().template.spec.unwrap());
    let arguments = |container: &k8s_openapi::api::core::v1::Container| container.args.clone().unwrap();
    let migrates = own.init_containers.unwrap().remove(0);
    let restored = &own.containers[0];
    assert_eq!(arguments(&migrates), ["migrate"]);
    assert_eq!(arguments(restored), ["database", "restored"]);
    assert_eq!(restored.image, migration.containers[0].image);
    assert_eq!(restored.env, migration.containers[0].env);
    let secrets =
        own.volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref()?.secret_name.as_deref());
    assert_eq!(secrets.collect::<Vec<_>>(), ["owner"], "the login of the migration");
    assert_eq!(release.replicas().await, [Some(2); 4]);
}
