//! The rights that the roles and admission policies of the chart give and take.

mod admission_policies;
mod matrix;
mod operator_rights;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempmail_tests::Cluster;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team};
use tempmail_tests::wait::eventually;

use super::charts::render;

/// The roles and policies of the chart, installed.
struct InstalledRoles {
    /// Name of the release, with which the names of the roles begin.
    release: String,
    /// Its namespace.
    namespace: String,
}

impl InstalledRoles {
    /// Installs the roles of a release in a namespace, of the same name, for an operator of the whole cluster;
    /// returns when they are enforced.
    async fn install(cluster: &Cluster, namespace: &str) -> Self {
        Self::install_for(cluster, namespace, &[]).await
    }

    /// The same for an operator that is restricted to these namespaces, if there are any.
    async fn install_for(cluster: &Cluster, namespace: &str, watched: &[&str]) -> Self {
        let roles = Self { release: namespace.to_owned(), namespace: namespace.to_owned() };
        let namespaces = format!("operator.watchNamespaces={{{}}}", watched.join(","));
        // Other tests of the cluster create tokens that have expired.
        let mut arguments = vec!["--set", "admissionPolicies.expiredTokens=false"];
        if !watched.is_empty() {
            arguments.extend(["--set", &namespaces]);
        }
        let rendered =
            render("tempmail", &roles.release, &roles.namespace, &arguments).expect("Helm renders");
        cluster.apply(&rendered).await.expect("the API server accepts the roles");
        let (operator, _) = roles.operator();
        let served = watched.first().copied().unwrap_or(namespace);
        // One right by each binding.
        for (namespace, verb, resource) in [
            (served, "list", "tenants.tempmail.dev"),
            (served, "get", "secrets"),
            (namespace, "create", "leases.coordination.k8s.io"),
            ("default", "create", "events.events.k8s.io"),
        ] {
            wait_until_allowed(cluster, &operator, namespace, verb, resource).await;
        }
        roles.wait_until_policy_is_enforced(cluster, served).await;
        roles
    }

    /// Returns when the operator's account can't create a Secret that no object of tempmail controls.
    async fn wait_until_policy_is_enforced(&self, cluster: &Cluster, namespace: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.client(cluster), namespace);
        let metadata = ObjectMeta { name: Some("probe".to_owned()), ..ObjectMeta::default() };
        let secret = Secret { metadata, ..Secret::default() };
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the policy is enforced", || async {
            let refused = secrets.create(&parameters, &secret).await.err()?;
            refused.to_string().contains("ValidatingAdmissionPolicy").then_some(())
        })
        .await;
    }

    /// The rules of the operator's Role in a namespace that it is restricted to.
    async fn rules(&self, cluster: &Cluster, namespace: &str) -> Vec<Value> {
        let arguments = ["get", "role", &self.role(), "--namespace", namespace, "--output", "json"];
        let shown = cluster.kubectl(&arguments).await.expect("the Role is there");
        let role: Value = serde_json::from_str(&shown).expect("JSON");
        role["rules"].as_array().expect("it has rules").clone()
    }

    /// Replaces them.
    async fn set_rules(&self, cluster: &Cluster, namespace: &str, rules: &Value) {
        let patch = json!({ "rules": rules }).to_string();
        let role = self.role();
        let arguments =
            ["patch", "role", &role, "--namespace", namespace, "--type", "merge", "--patch", &patch];
        cluster.kubectl(&arguments).await.expect("the Role is patched");
    }

    /// The name of the Role.
    fn role(&self) -> String {
        format!("{}-operator-objects", self.release)
    }

    /// A client with the rights of the operator's service account.
    fn client(&self, cluster: &Cluster) -> Client {
        let (user, groups) = self.operator();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        cluster.impersonating(&user, &groups)
    }

    /// User and groups of the operator's service account.
    fn operator(&self) -> (String, Vec<String>) {
        let Self { release, namespace } = self;
        let groups = [
            "system:authenticated".to_owned(),
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        (format!("system:serviceaccount:{namespace}:{release}-operator"), groups.to_vec())
    }
}

/// Waits until a user has a right in a namespace: the API server enforces roles and bindings some moments
/// after it accepts them.
async fn wait_until_allowed(cluster: &Cluster, user: &str, namespace: &str, verb: &str, resource: &str) {
    let question = ["auth", "can-i", verb, resource, "--namespace", namespace, "--as", user];
    let what = format!("{user} may {verb} {resource}");
    eventually(&what, || async { cluster.kubectl(&question).await.ok() }).await;
}

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
