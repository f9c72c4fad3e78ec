//! What the kinds of objects have in common: metadata and status accessors.

use std::fmt::Debug;

use kube::core::{DeserializeGuard, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempmail_crds::Condition;
use tempmail_store::ResourceKind;
use uuid::Uuid;

/// A kind of objects.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
    /// The kind in the store.
    const KIND: ResourceKind;
    /// The type of the status.
    type Status: Clone + Debug + Default + PartialEq + Serialize + Send + Sync;

    /// The API of the object's namespace, or of the cluster.
    fn api(&self, client: &Client) -> Api<Self>;
    /// The APIs to watch: one of each of these namespaces, or one of the whole cluster if there are none or
    /// the kind is in none.
    fn watched_apis(client: &Client, namespaces: &[String]) -> Vec<Api<DeserializeGuard<Self>>>;
    /// The status as it was read.
    fn status(&self) -> Option<&Self::Status>;
    /// The conditions of a status.
    fn conditions(status: &Self::Status) -> &[Condition];
    /// The conditions of a status, mutably.
    fn conditions_mut(status: &mut Self::Status) -> &mut Vec<Condition>;
    /// Sets the `observedGeneration` of a status.
    fn set_observed_generation(status: &mut Self::Status, generation: Option<i64>);
    /// Whether the row is kept when the object is deleted.
    fn is_retained(&self) -> bool;
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
}

/// Implements the accessors of [`Kind`] that differ between kinds only by names.
macro_rules! kind_accessors {
    ($kind:ident, $status:ident, cluster) => {
        kind_accessors!(
            @ $kind, $status,
            |_object, client| kube::Api::all(client.clone()),
            |client, _namespaces| vec![kube::Api::all(client.clone())]
        );
    };
    ($kind:ident, $status:ident, namespaced) => {
        kind_accessors!(
            @ $kind, $status,
            |object, client| {
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                kube::Api::namespaced(client.clone(), namespace)
            },
            |client, namespaces| crate::kind::namespaced_apis(client, namespaces)
        );
    };
    (
        @ $kind:ident, $status:ident,
        |$object:ident, $client:ident| $api:expr,
        |$watching:ident, $namespaces:ident| $watched:expr
    ) => {
        const KIND: tempmail_store::ResourceKind = tempmail_store::ResourceKind::$kind;
        type Status = $status;

        fn api(&self, $client: &kube::Client) -> kube::Api<Self> {
            let $object = self;
            $api
        }
        fn watched_apis(
            $watching: &kube::Client,
            $namespaces: &[String],
        ) -> Vec<kube::Api<kube::core::DeserializeGuard<Self>>> {
            $watched
        }
        fn status(&self) -> Option<&$status> {
            self.status.as_ref()
        }
        fn conditions(status: &$status) -> &[tempmail_crds::Condition] {
            &status.conditions
        }
        fn conditions_mut(status: &mut $status) -> &mut Vec<tempmail_crds::Condition> {
            &mut status.conditions
        }
        fn set_observed_generation(status: &mut $status, generation: Option<i64>) {
            status.observed_generation = generation;
        }
    };
}
pub(crate) use kind_accessors;

/// The API of each of these namespaces, or of the whole cluster if there are none.
pub(crate) fn namespaced_apis<K>(client: &Client, namespaces: &[String]) -> Vec<Api<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespaces {
        [] => vec![Api::all(client.clone())],
        names => names.iter().map(|name| Api::namespaced(client.clone(), name)).collect(),
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
