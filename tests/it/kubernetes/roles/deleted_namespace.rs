//! A namespace that the operator is restricted to is deleted: its Roles may go before its objects.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team};
use tempmail_tests::wait::eventually;

use super::InstalledRoles;

/// The objects of [`declare`], each with a finalizer.
const OBJECTS: [&str; 4] = ["customdomain/mail", "apitoken/ci", "webhook/hook", "mailbox/box"];

async fn declare(team: &Team) {
    team.declare_tenant("").await;
    team.apply("CustomDomain", "mail", &format!("domain: {}", team.domain("mail"))).await;
    team.apply("ApiToken", "ci", "type: Live").await;
    team.apply("Webhook", "hook", "url: 'https://hooks.example.com/in'").await;
    team.apply("Mailbox", "box", &format!("address: {}@inbox.localhost", team.tenant)).await;
    for object in OBJECTS {
        team.wait_for_condition(object, "Accepted").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_namespace_goes_though_its_role_goes_first() {
    let installation = Installation::without_operator().await;
    let cluster = &installation.cluster;
    let (home, team) = (cluster.namespace(&[]).await, Team::without_tenant(cluster).await);
    let watched = team.namespace.name();
    let roles = InstalledRoles::install_for(cluster, home.name(), &[watched]).await;
    let (user, groups) = roles.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let proxy = ApiProxy::start_as(cluster, &user, &groups).await;
    let mut config = installation.app.config().clone();
    config.operator.watch_namespaces = vec![watched.to_owned()];
    let database = installation.app.database().role_url(Role::Operator);
    let operator = OperatorProcess::spawn(&config, &database, &proxy.kubeconfig_in(home.name()));
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
    declare(&team).await;

    for kind in ["rolebinding", "role"] {
        team.kubectl(&["delete", kind, &roles.role()]).await.expect("it is deleted");
    }
    eventually("the operator may not read Secrets", || async {
        cluster.kubectl(&["auth", "can-i", "get", "secrets", "-n", watched, "--as", &user]).await.err()
    })
    .await;
    // What it may not do is in its log.
    team.trigger_reconcile("apitoken/ci").await;
    operator.wait_for_log(&format!("get secrets {watched}/ci-token")).await;

    // It lists the objects anew, without the Role.
    operator.restart().await;
    operator.wait_until_leader().await;
    cluster.kubectl(&["delete", "namespace", watched, "--wait=false"]).await.expect("it is deleted");
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    eventually("the namespace is gone", || async {
        namespaces.get_opt(watched).await.expect("the API server answers").is_none().then_some(())
    })
    .await;
}
