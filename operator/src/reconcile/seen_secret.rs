//! The versions of Secrets that reconciliations saw last, so that a change in between can be found.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use tempmail_store::ResourceKind;
use uuid::Uuid;

use super::trigger::ObjectKey;
use crate::kind::{Kind, uid};

/// The Secret of an object as its reconciliation saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenSecret {
    pub kind: ResourceKind,
    pub object: ObjectKey,
    /// Name of the Secret.
    pub name: String,
    /// `None`: there was no Secret.
    pub version: Option<SecretVersion>,
}

/// What differs between any two versions of the Secrets of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretVersion {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl SecretVersion {
    /// The version of the Secret with this metadata.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() }
    }
}

/// The Secrets that were seen, by the uid of their object: one of each object that is reconciled.
#[derive(Debug, Default)]
pub(crate) struct SeenSecrets(Mutex<HashMap<Uuid, SeenSecret>>);

impl SeenSecrets {
    /// Records what there was under the name of an object's Secret.
    pub(crate) fn record<K: Kind>(&self, object: &K, name: &str, metadata: Option<&ObjectMeta>) {
        let seen = SeenSecret {
            kind: K::KIND,
            object: ObjectKey { namespace: object.namespace(), name: object.name_any() },
            name: name.to_owned(),
            version: metadata.map(SecretVersion::of),
        };
        self.lock().insert(uid(object), seen);
    }

    /// Forgets the Secret of an object that is gone.
    pub(crate) fn forget(&self, object: Uuid) {
        self.lock().remove(&object);
    }

    /// The uids of the objects.
    pub(crate) fn objects(&self) -> Vec<Uuid> {
        self.lock().keys().copied().collect()
    }

    /// The Secret of an object.
    pub(crate) fn get(&self, object: Uuid) -> Option<SeenSecret> {
        self.lock().get(&object).cloned()
    }

    /// Forgets the Secret of an object unless it was seen again since. Returns whether it was not.
    pub(crate) fn take(&self, object: Uuid, seen: &SeenSecret) -> bool {
        let mut secrets = self.lock();
        let is_same = secrets.get(&object) == Some(seen);
        if is_same {
            secrets.remove(&object);
        }
        is_same
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, SeenSecret>> {
        // Each change is a single operation, so a panic elsewhere leaves the map consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
