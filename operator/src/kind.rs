//! What the kinds of objects have in common.

use std::fmt::Debug;

use kube::core::object::HasStatus;
use kube::core::{ClusterResourceScope, DeserializeGuard, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tempmail_crds::KindStatus;
use tempmail_store::{LimitUsage, Tenant};
use uuid::Uuid;

/// A kind of objects.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope: ObjectScope>
    + HasStatus<Status: KindStatus>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// What messages call the rows of the kind.
    const PLURAL: &'static str;
    /// Whether objects of the kind decide which namespaces may use a tenant.
    const GIVES_GRANTS: bool = false;

    /// Whether the row is kept when the object is deleted.
    fn is_retained(&self) -> bool {
        false
    }
    /// Name of the Tenant that the object refers to; `None` for kinds without a `tenantRef`.
    fn tenant_name(&self) -> Option<&str> {
        None
    }
    /// What the object declares, as no other object of its tenant may: the name of a tenant or domain, or the address of a
    /// mailbox; `None` for kinds of which there may be several alike.
    fn declared(&self) -> Option<&str> {
        None
    }
    /// The custom domain that the object is or is under; `None` for kinds without one.
    fn domain_name(&self) -> Option<&str> {
        None
    }
    /// How many rows of the kind a tenant has, and may have; `None` for kinds without a limit.
    fn usage(_tenant: &Tenant) -> Option<LimitUsage> {
        None
    }

    /// The API of the object's namespace, or of the cluster.
    fn api(&self, client: &Client) -> Api<Self> {
        Self::Scope::api(client, self.meta().namespace.as_deref().unwrap_or_default())
    }
}

/// Where the objects of a kind are: in namespaces, or in none.
pub(crate) trait ObjectScope {
    /// The namespaces that a watch of the kind is restricted to where the operator is restricted to `namespaces`.
    fn restrict(namespaces: &[String]) -> &[String];
    /// The API of the objects in a namespace; of all objects if the kind is in none.
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, namespace: &str) -> Api<K>;
}

impl ObjectScope for NamespaceResourceScope {
    fn restrict(namespaces: &[String]) -> &[String] {
        namespaces
    }

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, namespace: &str) -> Api<K> {
        Api::namespaced(client.clone(), namespace)
    }
}

impl ObjectScope for ClusterResourceScope {
    fn restrict(_namespaces: &[String]) -> &[String] {
        &[]
    }

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, _namespace: &str) -> Api<K> {
        Api::all(client.clone())
    }
}

/// The APIs to watch: one of each of these namespaces, or one of the whole cluster if there are none or the kind is in none.
pub(crate) fn watched_apis<K: Kind>(client: &Client, namespaces: &[String]) -> Vec<Api<DeserializeGuard<K>>> {
    match K::Scope::restrict(namespaces) {
        [] => vec![Api::all(client.clone())],
        names => names.iter().map(|name| K::Scope::api(client, name)).collect(),
    }
}

/// The uid of an object.
pub(crate) fn uid<K: Resource>(object: &K) -> Uuid {
    uid_of(object.meta())
}

/// The uid in the metadata of an object; nil if it is missing, which the API server never sends.
pub(crate) fn uid_of(metadata: &ObjectMeta) -> Uuid {
    metadata.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or_default()
}
