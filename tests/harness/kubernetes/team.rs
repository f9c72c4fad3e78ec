//! A tenant of a test's own, and the namespace that it allows.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use uuid::Uuid;

use super::{Cluster, Namespace};
use crate::CommandOutput;

/// Longest that a condition is waited for: as [`crate::wait::DEADLINE`].
const TIMEOUT: &str = "--timeout=120s";

/// A tenant of a test's own, and the one namespace that it allows.
#[derive(Debug)]
pub struct Team<'a> {
    cluster: &'a Cluster,
    /// Name of the Tenant; also a label that makes domains the test's own.
    pub tenant: String,
    /// Its namespace.
    pub namespace: Namespace,
}

impl<'a> Team<'a> {
    /// Declares a tenant whose spec has these further lines, and waits until it is ready.
    ///
    /// # Panics
    /// It is refused.
    pub async fn with(cluster: &'a Cluster, spec: &str) -> Self {
        let team = Self::undeclared(cluster).await;
        team.declare_tenant(spec).await;
        team
    }

    /// A name for a tenant that nobody declared yet, and the namespace.
    pub async fn undeclared(cluster: &'a Cluster) -> Self {
        let tenant = format!("team-{}", &Uuid::new_v4().simple().to_string()[..12]);
        Self { cluster, tenant, namespace: cluster.namespace(&[]).await }
    }

    /// Declares the tenant anew, with these further lines of its spec, and waits until it is ready.
    ///
    /// # Panics
    /// It is refused.
    pub async fn declare_tenant(&self, spec: &str) {
        self.apply_tenant(spec).await;
        let of_tenant = format!("tenant/{}", self.tenant);
        self.cluster
            .kubectl(&["wait", &of_tenant, "--for=condition=Ready", TIMEOUT])
            .await
            .expect("the tenant is ready");
    }

    /// Declares the tenant, with these further lines of its spec.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn apply_tenant(&self, spec: &str) {
        let (tenant, namespace) = (&self.tenant, self.namespace.name());
        let manifest = format!(
            "apiVersion: tempmail.dev/v1alpha1
kind: Tenant
metadata: {{name: {tenant}}}
spec:
  allowedNamespaces:
    matchExpressions: [{{key: kubernetes.io/metadata.name, operator: In, values: [{namespace}]}}]
{spec}
"
        );
        self.cluster.apply(&manifest).await.expect("the tenant is taken");
    }

    /// A name that no other test has: `label` under a domain of the test's own.
    pub fn domain(&self, label: &str) -> String {
        format!("{label}.{}.example", self.tenant)
    }

    /// Applies an object to the namespace: its kind, its name, and its spec beside the tenant's name,
    /// as YAML in one line, such as `domain: example.com, deletionPolicy: Retain`.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn apply(&self, kind: &str, name: &str, spec: &str) -> Result<String, CommandOutput> {
        let (tenant, namespace) = (&self.tenant, self.namespace.name());
        let manifest = format!(
            "{{apiVersion: tempmail.dev/v1alpha1, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}}}, \
             spec: {{tenantRef: {{name: {tenant}}}, {spec}}}}}"
        );
        self.cluster.apply(&manifest).await
    }

    /// Applies an object that is in no namespace and of no tenant, under the tenant's name: its kind, and
    /// its spec as [`Self::apply`] takes it.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn apply_without_namespace(&self, kind: &str, spec: &str) -> Result<String, CommandOutput> {
        let tenant = &self.tenant;
        let manifest = format!(
            "{{apiVersion: tempmail.dev/v1alpha1, kind: {kind}, metadata: {{name: {tenant}}}, spec: {{{spec}}}}}"
        );
        self.cluster.apply(&manifest).await
    }

    /// `kubectl` in the namespace.
    ///
    /// # Errors
    /// As [`Cluster::kubectl`].
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, CommandOutput> {
        let mut all = vec!["--namespace", self.namespace.name()];
        all.extend(arguments);
        self.cluster.kubectl(&all).await
    }

    /// An object (`customdomain/name`), as it is now.
    ///
    /// # Panics
    /// There is none.
    pub async fn get(&self, object: &str) -> Value {
        let shown = self.kubectl(&["get", object, "-o", "json"]).await.expect("the object is there");
        serde_json::from_str(&shown).expect("it is JSON")
    }

    /// Waits until a condition of an object holds (`Ready`, `Ready=False`), and returns the object.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait(&self, object: &str, condition: &str) -> Value {
        let waited = self.kubectl(&["wait", object, &format!("--for=condition={condition}"), TIMEOUT]).await;
        if let Err(ended) = waited {
            panic!("{object} is never {condition}: {ended:?}\n{}", self.get(object).await);
        }
        self.get(object).await
    }

    /// Waits until a condition of an object has this reason, and returns the object.
    ///
    /// # Panics
    /// It never has.
    pub async fn wait_for_reason(&self, object: &str, condition: &str, reason: &str) -> Value {
        let path = format!("--for=jsonpath={{.status.conditions[?(@.type=='{condition}')].reason}}={reason}");
        if let Err(ended) = self.kubectl(&["wait", object, &path, TIMEOUT]).await {
            panic!("{condition} of {object} never has {reason}: {ended:?}\n{}", self.get(object).await);
        }
        self.get(object).await
    }

    /// Deletes an object and waits until it is gone.
    ///
    /// # Panics
    /// It stays.
    pub async fn delete(&self, object: &str) {
        self.kubectl(&["delete", object, TIMEOUT]).await.expect("the object goes");
    }
}

/// The condition of a type of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

/// The value of a key in a Secret, where it has one.
///
/// # Panics
/// The value is no text.
pub fn secret_value(secret: &Value, key: &str) -> Option<String> {
    let value = BASE64_STANDARD.decode(secret["data"][key].as_str()?).expect("it is Base64");
    Some(String::from_utf8(value).expect("it is text"))
}
