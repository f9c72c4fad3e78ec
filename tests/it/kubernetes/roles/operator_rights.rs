//! The operator with only the rights of the chart's roles.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, WatchParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tempmail_tests::kubernetes::{
    ApiProxy, Team, Verb, assert_conditions, condition_message, condition_reason,
};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Cluster, TestDns};

use super::{InstalledRoles, wait_until_allowed};

/// Everything that the operator does for an object of a kind.
struct Lifecycle {
    kind: &'static str,
    /// Its spec in one line; `{tenant}` and `{domain}` are the test's own.
    spec: &'static str,
    /// The condition that it has when it is reconciled.
    condition: &'static str,
    /// The annotation that requests an act of the operator, and the field of the status that shows its
    /// value when that is done.
    request: Option<(&'static str, &'static str)>,
    /// The suffix of the name of its Secret; `None` for kinds that have none.
    secret: Option<&'static str>,
}

const ROTATE: Option<(&str, &str)> = Some(("rotate-requested-at", "lastHandledRotateAt"));

const LIFECYCLES: &[Lifecycle] = &[
    Lifecycle { kind: "Tenant", spec: "retentionHours: 1", condition: "Ready", request: None, secret: None },
    Lifecycle {
        kind: "CustomDomain",
        spec: "tenantRef: {name: {tenant}}, domain: {domain}",
        condition: "Accepted",
        request: Some(("verify-requested-at", "lastHandledVerifyAt")),
        secret: None,
    },
    Lifecycle {
        kind: "SystemDomain",
        spec: "domain: sys.{tenant}.example",
        condition: "Ready",
        request: None,
        secret: None,
    },
    Lifecycle {
        kind: "Webhook",
        spec: "tenantRef: {name: {tenant}}, url: 'https://hooks.example.com/mail'",
        condition: "Ready",
        request: ROTATE,
        secret: Some("webhook"),
    },
    Lifecycle {
        kind: "ApiToken",
        spec: "tenantRef: {name: {tenant}}, type: Live",
        condition: "Ready",
        request: ROTATE,
        secret: Some("token"),
    },
    Lifecycle {
        kind: "Mailbox",
        spec: "tenantRef: {name: {tenant}}, address: '{tenant}@inbox.localhost'",
        condition: "Ready",
        request: ROTATE,
        secret: Some("mailbox"),
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_of_the_chart_suffice_for_the_operator() {
    let (cluster, dns) = (Cluster::exclusive().await, TestDns::start().await);
    let home = cluster.namespace(&[]).await;
    let (user, groups) = InstalledRoles::install(&cluster, home.name()).await.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let proxy = ApiProxy::start_as(&cluster, &user, &groups).await;
    let mut app = App::builder()
        .dns(&dns)
        .receivers()
        .config(|config| config.operator.lease_seconds = 2)
        .operator(client(&proxy, home.name()))
        .start()
        .await;

    let team = Team::new(&cluster).await;
    for lifecycle in LIFECYCLES {
        run(&team, lifecycle).await;
    }
    // Another operator acquires the lease.
    app.start_operator(client(&proxy, home.name()));
    team.declare_tenant("suspended: true").await;
    team.delete(&team.tenant_object()).await;
    assert_rights_suffice(&proxy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_of_named_namespaces_suffice_for_an_operator_of_these() {
    let (cluster, dns) = (Cluster::exclusive().await, TestDns::start().await);
    let home = cluster.namespace(&[]).await;
    let (team, second) = (Team::without_tenant(&cluster).await, Team::without_tenant(&cluster).await);
    let outside = Team::without_tenant(&cluster).await;
    let watched = [team.namespace.name(), second.namespace.name()];
    let roles = InstalledRoles::install_for(&cluster, home.name(), &watched).await;
    let (user, groups) = roles.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let proxy = ApiProxy::start_as(&cluster, &user, &groups).await;
    outside.apply("ApiToken", "one", "type: Live").await;
    let _app = App::builder()
        .dns(&dns)
        .receivers()
        .config(|config| {
            config.operator.lease_seconds = 2;
            config.operator.watch_namespaces = watched.map(str::to_owned).to_vec();
        })
        .operator(client(&proxy, home.name()))
        .start()
        .await;

    // A Tenant is in no namespace.
    outside.declare_tenant("").await;
    second.declare_tenant("").await;
    second.apply_ready("ApiToken", "one", "type: Live").await;
    team.declare_tenant("").await;
    for lifecycle in LIFECYCLES {
        run(&team, lifecycle).await;
    }
    assert_rights_suffice(&proxy).await;
    let untouched = outside.get("apitoken/one").await;
    assert_eq!(condition_reason(&untouched, "Accepted"), "Pending");
    assert!(untouched["metadata"].get("finalizers").is_none(), "{untouched:#}");
    assert!(outside.get_opt("secret/one-token").await.is_none(), "it has a token");
    let asked = |namespace: &str| {
        proxy.requests().iter().any(|request| request.namespace.as_deref() == Some(namespace))
    };
    assert!(asked(watched[0]) && !asked(outside.namespace.name()), "it asks about other namespaces");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_secret_that_its_role_no_longer_lets_it_read() {
    let (cluster, dns) = (Cluster::exclusive().await, TestDns::start().await);
    let home = cluster.namespace(&[]).await;
    let team = Team::without_tenant(&cluster).await;
    let watched = team.namespace.name();
    let roles = InstalledRoles::install_for(&cluster, home.name(), &[watched]).await;
    let (user, groups) = roles.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let proxy = ApiProxy::start_as(&cluster, &user, &groups).await;
    let _app = App::builder()
        .dns(&dns)
        .receivers()
        .config(|config| {
            config.operator.watch_namespaces = vec![watched.to_owned()];
            config.operator.secret_check_seconds = 5;
        })
        .operator(client(&proxy, home.name()))
        .start()
        .await;
    team.declare_tenant("").await;
    team.apply_ready("ApiToken", "one", "type: Live").await;

    let rules = roles.rules(&cluster, watched).await;
    let without_secrets: Vec<&Value> =
        rules.iter().filter(|rule| rule["resources"] != json!(["secrets"])).collect();
    roles.set_rules(&cluster, watched, &json!(without_secrets)).await;
    let shown = team.wait_for_reason("apitoken/one", "Ready", "SecretUnreadable").await;
    assert_conditions(&shown, &[("Ready", "False"), ("Accepted", "True"), ("Stalled", "True")]);
    let message = condition_message(&shown, "Ready");
    assert!(message.contains("cannot get resource \"secrets\""), "{message}");

    roles.set_rules(&cluster, watched, &json!(rules)).await;
    wait_until_allowed(&cluster, &user, watched, "get", "secrets").await;
    team.trigger_reconcile("apitoken/one").await;
    team.wait_for_condition("apitoken/one", "Ready").await;
}

/// Asserts that no request was refused, and that the operator sent the requests that rights are for.
async fn assert_rights_suffice(proxy: &ApiProxy) {
    let refused: Vec<_> =
        proxy.requests().into_iter().filter(|request| request.status == Some(403)).collect();
    assert!(refused.is_empty(), "the chart's roles lack {refused:#?}");
    for (verb, resource) in [
        (Verb::Create, "leases"),
        (Verb::Patch, "leases"),
        (Verb::Create, "events"),
        (Verb::Watch, "namespaces"),
        (Verb::Patch, "tenants"),
    ] {
        eventually(&format!("a request to {verb:?} {resource}"), async || {
            let requests = proxy.requests();
            requests.iter().any(|request| request.verb == verb && request.resource == resource).then_some(())
        })
        .await;
    }
}

/// Has the operator do everything that it does for an object of a kind.
async fn run(team: &Team, lifecycle: &Lifecycle) {
    let object = format!("{}/one", lifecycle.kind.to_lowercase());
    let spec = lifecycle.spec.replace("{tenant}", &team.tenant).replace("{domain}", &team.domain("one"));
    team.apply_object(lifecycle.kind, "one", &spec).await;
    team.wait_for_condition(&object, lifecycle.condition).await;
    if let Some((annotation, field)) = lifecycle.request {
        team.annotate(&object, &format!("tempmail.dev/{annotation}"), "now").await;
        team.wait_for_status(&object, field, "now").await;
    }
    if let Some(suffix) = lifecycle.secret {
        let secret = format!("secret/one-{suffix}");
        team.delete(&secret).await;
        team.trigger_reconcile(&object).await;
        team.wait_until_created(&secret).await;
    }
    team.annotate(&object, "tempmail.dev/paused", "true").await;
    team.wait_for_condition(&object, "ReconciliationPaused").await;
    team.remove_annotation(&object, "tempmail.dev/paused").await;
    team.delete(&object).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_the_operator_cannot_list_secrets_or_pods() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let client = InstalledRoles::install(cluster, home.name()).await.client(cluster);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), home.name());
    cluster.objects(home.name()).create_unowned_secret("one").await;
    secrets.get("one").await.expect("it may read one by its name");

    let everywhere: Api<Secret> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client.clone());
    assert_forbidden(everywhere.list(&ListParams::default()).await);
    assert_forbidden(secrets.list(&ListParams::default()).await);
    assert_forbidden(secrets.watch(&WatchParams::default(), "0").await.map(drop));
    assert_forbidden(secrets.delete("one", &DeleteParams::default()).await);
    assert_forbidden(secrets.delete_collection(&DeleteParams::default(), &ListParams::default()).await);
    assert_forbidden(pods.list(&ListParams::default()).await);
}

fn assert_forbidden<T>(answer: kube::Result<T>) {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it is allowed"),
    }
}

/// A client through the proxy, of a program in this namespace.
fn client(proxy: &ApiProxy, namespace: &str) -> Client {
    let url = format!("http://{}", proxy.address()).parse().expect("a URL");
    let mut config = Config::new(url);
    config.default_namespace = namespace.to_owned();
    Client::try_from(config).expect("it needs no credentials")
}
