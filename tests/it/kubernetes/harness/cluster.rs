//! Clusters.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::program;
use tempmail_tests::wait::eventually;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::config_map;

#[tokio::test]
async fn kubectl_applies_manifests_and_reports_errors() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[("tempmail.dev/tenant", "acme")]).await;
    let yaml = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: one, namespace: {}}}, data: {{colour: blue}}}}",
        namespace.name()
    );
    assert_eq!(cluster.apply(&yaml).await.unwrap(), "configmap/one created\n");
    let read = namespace.api::<ConfigMap>().get("one").await.unwrap();
    assert_eq!(read.data.unwrap()["colour"], "blue");
    let selected =
        cluster.kubectl(&["get", "namespaces", "-l", "tempmail.dev/tenant=acme", "-o", "name"]).await;
    assert!(selected.unwrap().contains(&format!("namespace/{}\n", namespace.name())));

    let refused = cluster.apply(&yaml.replace("one", "No_Name")).await.unwrap_err();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("metadata.name: Invalid value"), "{}", refused.stderr);
}

#[tokio::test]
async fn defines_the_kinds_of_tempmail() {
    let definitions: Api<CustomResourceDefinition> = Api::all(Cluster::shared().await.client());
    let found = definitions.list(&ListParams::default()).await.unwrap();
    let ours: Vec<_> = found.iter().filter(|definition| definition.spec.group == "tempmail.dev").collect();
    assert!(!ours.is_empty());
    for definition in ours {
        let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref()).unwrap();
        assert!(
            conditions.iter().any(|it| it.type_ == "Established" && it.status == "True"),
            "{conditions:?}"
        );
    }
}

#[tokio::test]
async fn impersonates_users_and_groups() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let secrets =
        |groups: &[&str]| Api::<Secret>::namespaced(cluster.impersonating("alice", groups), namespace.name());
    let refused = secrets(&[]).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains(r#"User "alice" cannot list resource "secrets""#), "{refused}");
    secrets(&["system:masters"]).list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn shares_one_cluster_among_tests() {
    let (one, other) = tokio::join!(Cluster::shared(), Cluster::shared());
    assert!(std::ptr::eq(one, other));
}

#[tokio::test]
async fn deletes_the_namespace_of_a_test() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    namespace.api().create(&PostParams::default(), &config_map("one")).await.unwrap();
    let name = namespace.name().to_owned();
    drop(namespace);
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    eventually("the namespace is gone", || async {
        namespaces.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn finds_helm() {
    let version = tokio::process::Command::new(program("helm")).args(["version", "--short"]).output().await;
    let version = String::from_utf8(version.unwrap().stdout).unwrap();
    assert!(version.starts_with("v3."), "{version}");
}

#[tokio::test]
async fn stops_and_starts_the_api_server_of_an_exclusive_cluster() {
    let shared = Cluster::shared().await;
    let own = Cluster::exclusive().await;
    let namespace = own.namespace(&[]).await;
    // A client keeps connections, and may notice their end only at the next request.
    let read = async || namespace.api::<ConfigMap>().get("one").await;
    namespace.api().create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert!(Api::<Namespace>::all(shared.client()).get_opt(namespace.name()).await.unwrap().is_none());

    own.restart_api_server().await;
    read().await.unwrap();
    own.kill_api_server();
    assert!(read().await.is_err());
    own.start_api_server().await;
    read().await.unwrap();

    own.pause_api_server();
    let paused = timeout(Duration::from_millis(500), read()).await;
    assert!(paused.is_err(), "{paused:?}");
    own.resume_api_server();
    read().await.unwrap();
    Api::<Namespace>::all(shared.client()).get("default").await.unwrap();
}

#[tokio::test]
async fn leaves_no_object_of_an_earlier_test_in_an_exclusive_cluster() {
    let address = {
        let first = Cluster::exclusive().await;
        let objects = first.objects("default");
        objects.apply_object("SystemDomain", "left", "domain: left.example").await;
        let finalizer = serde_json::json!({"metadata": {"finalizers": ["tempmail.dev/test"]}});
        objects.patch("systemdomain/left", &finalizer).await;
        objects.create_unowned_secret("left").await;
        first.address()
    };
    // Another test may have taken the cluster meanwhile.
    let second = Cluster::exclusive().await;
    let objects = second.objects("default");
    assert_eq!(objects.get_opt("systemdomain/left").await, None, "{address}");
    assert_eq!(objects.get_opt("secret/left").await, None, "{address}");
}

#[tokio::test]
async fn ends_an_exclusive_cluster_that_is_not_to_be_reused() {
    let own = Cluster::exclusive().await;
    own.do_not_reuse();
    let address = own.address();
    drop(own);
    assert!(TcpStream::connect(address).await.is_err(), "the API server has ended");
}
