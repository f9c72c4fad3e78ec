//! The operator with nothing but the roles of the chart.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::core::ObjectMeta;
use kube::{Api, Client, Config};
use tempmail_tests::kubernetes::{ApiProxy, Team, Verb};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Cluster, TestDns};

use super::Roles;

/// What the operator does in the life of an object.
struct Life {
    kind: &'static str,
    /// Its spec in one line; `{tenant}` and `{domain}` are the test's own.
    spec: &'static str,
    /// Condition that it has when all is made for it.
    made: &'static str,
    /// Annotations that ask for an act.
    acts: &'static [&'static str],
    /// What the name of its Secret ends in; `None` for kinds that have none.
    secret: Option<&'static str>,
}

/// The kinds, one after the other.
const LIVES: &[Life] = &[
    Life { kind: "Tenant", spec: "retentionHours: 1", made: "Ready", acts: &[], secret: None },
    Life {
        kind: "CustomDomain",
        spec: "tenantRef: {name: {tenant}}, domain: {domain}",
        made: "Accepted",
        acts: &["verify-requested-at"],
        secret: None,
    },
    Life {
        kind: "SystemDomain",
        spec: "domain: sys.{tenant}.example",
        made: "Ready",
        acts: &[],
        secret: None,
    },
    Life {
        kind: "Webhook",
        spec: "tenantRef: {name: {tenant}}, url: 'https://hooks.example.com/mail'",
        made: "Ready",
        acts: &["rotate-requested-at"],
        secret: Some("webhook"),
    },
    Life {
        kind: "ApiToken",
        spec: "tenantRef: {name: {tenant}}, type: Live",
        made: "Ready",
        acts: &["rotate-requested-at"],
        secret: Some("token"),
    },
    Life {
        kind: "Mailbox",
        spec: "tenantRef: {name: {tenant}}, address: '{tenant}@inbox.localhost'",
        made: "Ready",
        acts: &["rotate-requested-at"],
        secret: Some("mailbox"),
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_needs_no_more_than_the_roles_of_the_chart() {
    let (cluster, dns) = (Cluster::start().await, TestDns::start().await);
    let home = cluster.namespace(&[]).await;
    let roles = Roles::install(&cluster, home.name()).await;
    let (user, groups) = roles.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let proxy = ApiProxy::start_as(&cluster, &user, &groups).await;
    let mut app = App::builder()
        .dns(&dns)
        .receivers()
        .config(|config| config.operator.lease_seconds = 2)
        .operator(client(&proxy, home.name()))
        .start()
        .await;

    let team = Team::with(&cluster, "").await;
    for life in LIVES {
        live(&team, life).await;
    }
    // Another operator takes the lease over.
    app.start_operator(client(&proxy, home.name()));
    team.declare_tenant("  suspended: true").await;
    team.delete(&format!("tenant/{}", team.tenant)).await;

    let requests = proxy.requests();
    let refused: Vec<_> = requests.iter().filter(|request| request.status == Some(403)).collect();
    assert!(refused.is_empty(), "the chart's roles lack {refused:#?}");
    for (verb, resource) in [
        (Verb::Create, "leases"),
        (Verb::Patch, "leases"),
        (Verb::Create, "events"),
        (Verb::Watch, "namespaces"),
        (Verb::Patch, "tenants"),
    ] {
        let is_asked = requests.iter().any(|request| request.verb == verb && request.resource == resource);
        assert!(is_asked, "nobody asked to {verb:?} {resource}");
    }
}

/// Has the operator do all that it may have to do for an object, and waits until it is done.
async fn live(team: &Team<'_>, life: &Life) {
    let object = format!("{}/one", life.kind.to_lowercase());
    let spec = life.spec.replace("{tenant}", &team.tenant).replace("{domain}", &team.domain("one"));
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: {}, metadata: {{name: one}}, spec: {{{spec}}}}}",
        life.kind
    );
    let file = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file can be made");
    std::fs::write(file.path(), manifest).expect("a file can be written");
    let path = file.path().to_str().expect("the path is UTF-8");
    team.kubectl(&["apply", "-f", path]).await.expect("it is taken");
    team.wait(&object, life.made).await;
    for (number, act) in life.acts.iter().enumerate() {
        let asked = format!("tempmail.dev/{act}=ask-{number}");
        team.kubectl(&["annotate", &object, &asked]).await.expect("it is taken");
        eventually("the act is done", async || {
            let status = team.get(&object).await["status"].to_string();
            status.contains(&format!("ask-{number}")).then_some(())
        })
        .await;
    }
    if let Some(suffix) = life.secret {
        let secret = format!("secret/one-{suffix}");
        team.kubectl(&["delete", &secret]).await.expect("the administrator may");
        // The next look finds that it is gone.
        team.kubectl(&["annotate", &object, "example.com/look=now"]).await.expect("it is taken");
        let made = ["wait", &secret, "--for=create", "--timeout=120s"];
        team.kubectl(&made).await.expect("the Secret is made again");
    }
    team.kubectl(&["annotate", &object, "tempmail.dev/paused=true"]).await.expect("it is taken");
    team.wait(&object, "ReconciliationPaused").await;
    team.kubectl(&["annotate", &object, "tempmail.dev/paused-"]).await.expect("it is taken");
    team.delete(&object).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_account_is_refused_what_it_has_no_use_for() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = Roles::install(cluster, home.name()).await;
    let (user, groups) = roles.operator();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let client = cluster.impersonating(&user, &groups);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), home.name());
    let secret = Secret {
        metadata: ObjectMeta { name: Some("one".to_owned()), ..ObjectMeta::default() },
        ..Secret::default()
    };
    secrets.create(&PostParams::default(), &secret).await.expect("it may make one");
    secrets.get("one").await.expect("it may read one by its name");

    let everywhere: Api<Secret> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client.clone());
    is_refused(everywhere.list(&ListParams::default()).await);
    is_refused(secrets.list(&ListParams::default()).await);
    is_refused(secrets.watch(&WatchParams::default(), "0").await.map(drop));
    is_refused(secrets.delete("one", &DeleteParams::default()).await);
    is_refused(secrets.delete_collection(&DeleteParams::default(), &ListParams::default()).await);
    is_refused(pods.list(&ListParams::default()).await);
}

fn is_refused<T>(answer: kube::Result<T>) {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        Err(error) => panic!("it is answered otherwise: {error}"),
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
