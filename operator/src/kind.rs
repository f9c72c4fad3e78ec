//! What the kinds of objects have in common: metadata and status accessors.

use std::fmt::Debug;

use kube::core::ObjectMeta;
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
    /// The custom domain that the object is or is under; `None` for kinds without one.
    fn domain_name(&self) -> Option<&str> {
        None
    }
}

/// Implements the accessors of [`Kind`] that differ between kinds only by names.
macro_rules! kind_accessors {
    ($kind:ident, $status:ident, cluster) => {
        kind_accessors!(@ $kind, $status, |_object, client| kube::Api::all(client.clone()));
    };
    ($kind:ident, $status:ident, namespaced) => {
        kind_accessors!(@ $kind, $status, |object, client| {
            kube::Api::namespaced(client.clone(), object.metadata.namespace.as_deref().unwrap_or_default())
        });
    };
    (@ $kind:ident, $status:ident, |$object:ident, $client:ident| $api:expr) => {
        const KIND: tempmail_store::ResourceKind = tempmail_store::ResourceKind::$kind;
        type Status = $status;

        fn api(&self, $client: &kube::Client) -> kube::Api<Self> {
            let $object = self;
            $api
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

/// The uid of an object.
pub(crate) fn uid<K: Resource>(object: &K) -> Uuid {
    uid_of(object.meta())
}

/// The uid in the metadata of an object; nil if it is missing, which the API server never sends.
pub(crate) fn uid_of(metadata: &ObjectMeta) -> Uuid {
    metadata.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or_default()
}
