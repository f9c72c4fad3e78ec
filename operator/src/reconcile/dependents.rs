//! Objects that depend on a tenant, a namespace or a custom domain.

use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_store::ResourceKind;

use super::trigger::{ObjectKey, TriggerQueues};
use crate::kind::Kind;

/// What objects depend on, by name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dependency<'a> {
    Tenant(&'a str),
    Namespace(&'a str),
    Domain(&'a str),
}

/// The objects of one kind that may depend on something.
pub(crate) struct Dependents {
    kind: ResourceKind,
    list: Box<ListDependents>,
}

type ListDependents = dyn Fn(Dependency<'_>) -> Vec<ObjectKey> + Send + Sync;

impl Dependents {
    /// Those among the cached objects.
    pub(crate) fn new<K: Kind>(objects: reflector::Store<DeserializeGuard<K>>) -> Self {
        let list = move |dependency: Dependency<'_>| {
            let depends = |object: &DeserializeGuard<K>| match (dependency, &object.0) {
                (Dependency::Tenant(name), Ok(object)) => object.tenant_name() == Some(name),
                (Dependency::Namespace(name), _) => object.namespace().as_deref() == Some(name),
                (Dependency::Domain(name), Ok(object)) => object.domain_name() == Some(name),
                (Dependency::Tenant(_) | Dependency::Domain(_), Err(_)) => false,
            };
            let objects = objects.state_filter(depends);
            objects
                .iter()
                .map(|object| ObjectKey { namespace: object.namespace(), name: object.name_any() })
                .collect()
        };
        Self { kind: K::KIND, list: Box::new(list) }
    }

    /// Enqueues those that depend on `dependency`.
    pub(crate) fn enqueue(&self, dependency: Dependency<'_>, triggers: &TriggerQueues) {
        for key in (self.list)(dependency) {
            triggers.enqueue(self.kind, key);
        }
    }
}
