//! A tenant of a test's own, and the namespace that it allows.

use std::ops::Deref;

use serde_json::{Value, json};
use uuid::Uuid;

use super::cluster::Cluster;
use super::kubectl::Kubectl;
use super::namespace::Namespace;
use super::objects::Objects;
use crate::CommandOutput;

/// A name with this prefix that no other test has; it fits into a label of a domain name.
pub fn unique_name(prefix: &str) -> String {
    format!("{prefix}-{}", &Uuid::new_v4().simple().to_string()[..12])
}

/// What [`Team::declare_objects`] declares: an object of each kind that is in a namespace.
pub const TEAM_OBJECTS: [&str; 4] = ["customdomain/mail", "apitoken/ci", "webhook/hook", "mailbox/signup"];

/// A tenant team: a Tenant, and the one namespace that it allows. Its [`Objects`] are those of the
/// namespace.
#[derive(Debug)]
pub struct Team {
    kubectl: Kubectl,
    objects: Objects,
    /// Name of the Tenant; also a label that makes domains the test's own.
    pub tenant: String,
    /// Its namespace.
    pub namespace: Namespace,
}

impl Team {
    /// Declares a Tenant, and waits until it is ready.
    ///
    /// # Panics
    /// It is refused.
    pub async fn new(cluster: &Cluster) -> Self {
        Self::with_spec(cluster, "").await
    }

    /// Declares a Tenant with these further fields of its spec (`limits: {tokens: 1}`), and waits until it
    /// is ready.
    ///
    /// # Panics
    /// It is refused.
    pub async fn with_spec(cluster: &Cluster, spec: &str) -> Self {
        let team = Self::without_tenant(cluster).await;
        team.declare_tenant(spec).await;
        team
    }

    /// The name of a Tenant that is not declared yet, and the namespace.
    pub async fn without_tenant(cluster: &Cluster) -> Self {
        let tenant = unique_name("team");
        let namespace = cluster.namespace(&[]).await;
        let objects = cluster.objects(namespace.name());
        Self { kubectl: cluster.kubectl_program(), objects, tenant, namespace }
    }

    /// The same team in another cluster, whose namespace is created there. Nothing is declared.
    ///
    /// # Panics
    /// The API server refuses the namespace.
    pub async fn in_another(&self, cluster: &Cluster) -> Self {
        let namespace = cluster.namespace_named(self.namespace.name()).await;
        let objects = cluster.objects(namespace.name());
        Self { kubectl: cluster.kubectl_program(), objects, tenant: self.tenant.clone(), namespace }
    }

    /// Declares the Tenant, again perhaps, with these further fields of its spec, and waits until it is
    /// ready.
    ///
    /// # Panics
    /// It is refused.
    pub async fn declare_tenant(&self, spec: &str) {
        self.apply_tenant(spec).await;
        self.wait_for_condition(&self.tenant_object(), "Ready").await;
    }

    /// Declares the Tenant, with these further fields of its spec; does not wait.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn apply_tenant(&self, spec: &str) {
        let spec = format!("allowedNamespaces: {}, {spec}", self.selector());
        self.objects.apply_object("Tenant", &self.tenant, &spec).await;
    }

    /// The selector of the namespace, as YAML.
    pub fn selector(&self) -> String {
        let namespace = self.namespace.name();
        format!(
            "{{matchExpressions: [{{key: kubernetes.io/metadata.name, operator: In, values: [{namespace}]}}]}}"
        )
    }

    /// `tenant/…`, as [`Objects`] names it.
    pub fn tenant_object(&self) -> String {
        format!("tenant/{}", self.tenant)
    }

    /// Id of the tenant.
    ///
    /// # Panics
    /// The Tenant does not show it.
    pub async fn tenant_id(&self) -> String {
        let shown = self.get(&self.tenant_object()).await;
        shown["status"]["tenantId"].as_str().expect("the tenant has an id").to_owned()
    }

    /// Merges this into the spec of the Tenant.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn patch_tenant(&self, spec: Value) {
        self.patch(&self.tenant_object(), &json!({ "spec": spec })).await;
    }

    /// Removes the namespace from those that the Tenant allows.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn revoke_grant(&self) {
        let nowhere =
            json!([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nowhere"]}]);
        self.patch_tenant(json!({"allowedNamespaces": {"matchExpressions": nowhere}})).await;
    }

    /// A domain name that no other test has: `label` under a domain of the test's own.
    pub fn domain(&self, label: &str) -> String {
        format!("{label}.{}.example", self.tenant)
    }

    /// Applies an object of the tenant: its kind, its name, and its spec beside the tenant's name, as YAML
    /// in one line, such as `domain: example.com, deletionPolicy: Retain`.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn apply(&self, kind: &str, name: &str, spec: &str) -> Value {
        let spec = format!("tenantRef: {{name: {}}}, {spec}", self.tenant);
        self.objects.apply_object(kind, name, &spec).await
    }

    /// Applies an object of the tenant, and waits until it is ready.
    ///
    /// # Panics
    /// It never is.
    pub async fn apply_ready(&self, kind: &str, name: &str, spec: &str) -> Value {
        self.apply(kind, name, spec).await;
        self.wait_for_condition(&format!("{}/{name}", kind.to_lowercase()), "Ready").await
    }

    /// Declares the [objects of a team](TEAM_OBJECTS), with this domain, and the mailbox `signup` under it. Does not wait.
    ///
    /// # Panics
    /// The API server refuses one.
    pub async fn declare_objects(&self, domain: &str) {
        self.apply("CustomDomain", "mail", &format!("domain: {domain}")).await;
        self.apply("ApiToken", "ci", "type: Live").await;
        self.apply("Webhook", "hook", "url: 'https://hooks.example.com/in'").await;
        let mailbox = format!("address: signup@{domain}, adoptionPolicy: IfUnowned");
        self.apply("Mailbox", "signup", &mailbox).await;
    }

    /// `kubectl` in the namespace.
    ///
    /// # Errors
    /// As [`Cluster::kubectl`].
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, CommandOutput> {
        let mut all = vec!["--namespace", self.namespace.name()];
        all.extend(arguments);
        self.kubectl.run(&all, "").await
    }
}

impl Deref for Team {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}
