//! The versions of Secrets that reconciliations saw last, so that a change in between can be found, and when each is looked at
//! again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use tempmail_model::chance;
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
#[derive(Debug)]
pub(crate) struct SeenSecrets {
    /// Within this time each is looked at again.
    interval: Duration,
    secrets: Mutex<HashMap<Uuid, ScheduledSecret>>,
}

#[derive(Debug)]
struct ScheduledSecret {
    seen: SeenSecret,
    /// When it is looked at again, unless a reconciliation does so before.
    due: Timestamp,
}

impl SeenSecrets {
    /// None yet. Each that is recorded is due within `interval`.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, secrets: Mutex::default() }
    }

    /// Records what there was at `now` under the name of an object's Secret.
    pub(crate) fn record<K: Kind>(
        &self,
        object: &K,
        name: &str,
        metadata: Option<&ObjectMeta>,
        now: Timestamp,
    ) {
        let seen = SeenSecret {
            kind: K::KIND,
            object: ObjectKey { namespace: object.namespace(), name: object.name_any() },
            name: name.to_owned(),
            version: metadata.map(SecretVersion::of),
        };
        self.lock().insert(uid(object), ScheduledSecret { seen, due: self.next_look(now) });
    }

    /// Forgets the Secret of an object that is gone.
    pub(crate) fn forget(&self, object: Uuid) {
        self.lock().remove(&object);
    }

    /// The uids of the objects whose Secrets are due.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<Uuid> {
        self.lock().iter().filter(|(_, secret)| secret.due <= now).map(|(object, _)| *object).collect()
    }

    /// Schedules the Secret of an object again, which was looked at without a change.
    pub(crate) fn postpone(&self, object: Uuid, now: Timestamp) {
        if let Some(secret) = self.lock().get_mut(&object) {
            secret.due = self.next_look(now);
        }
    }

    /// The Secret of an object.
    pub(crate) fn get(&self, object: Uuid) -> Option<SeenSecret> {
        self.lock().get(&object).map(|secret| secret.seen.clone())
    }

    /// Forgets the Secret of an object unless it was seen again since. Returns whether it was not.
    pub(crate) fn take(&self, object: Uuid, seen: &SeenSecret) -> bool {
        let mut secrets = self.lock();
        let is_same = secrets.get(&object).is_some_and(|secret| secret.seen == *seen);
        if is_same {
            secrets.remove(&object);
        }
        is_same
    }

    /// When a Secret is due that was looked at `now`: at any time of the second half of the interval, so that those of one
    /// start do not stay together, with a rest in which the check is made.
    fn next_look(&self, now: Timestamp) -> Timestamp {
        now + self.interval.mul_f64(chance::factor(0.5..=0.95))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, ScheduledSecret>> {
        // Each change is a single operation, so a panic elsewhere leaves the map consistent.
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tempmail_crds::{ApiToken, ApiTokenSpec, OnSecretLoss, TenantRef, TokenType};

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(300);

    fn token(id: u128) -> ApiToken {
        let spec = ApiTokenSpec {
            tenant_ref: TenantRef { name: "acme".to_owned() },
            kind: TokenType::Live,
            secret: None,
            expires_at: None,
            on_secret_loss: OnSecretLoss::Rotate,
        };
        let mut token = ApiToken::new("ci", spec);
        token.metadata.uid = Some(Uuid::from_u128(id).to_string());
        token
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    /// Secrets of a thousand objects, seen at once.
    fn of_a_start() -> SeenSecrets {
        let secrets = SeenSecrets::new(INTERVAL);
        for id in 0..1000 {
            secrets.record(&token(id), "ci-token", None, after(0));
        }
        secrets
    }

    #[test]
    fn each_secret_is_due_within_the_interval_and_few_are_at_once() {
        let secrets = of_a_start();
        let mut looks = HashMap::<Uuid, i64>::new();
        for second in 1..=3000 {
            let due = secrets.due(after(second));
            assert!(due.len() < 40, "{} are due at once", due.len());
            for object in due {
                let last = looks.insert(object, second).unwrap_or(0);
                assert!((150..=300).contains(&(second - last)), "looked at {last} and {second}");
                secrets.postpone(object, after(second));
            }
        }
        assert!(looks.len() == 1000 && looks.values().all(|last| 3000 - last < 300), "one was missed");
    }

    #[test]
    fn a_secret_that_a_reconciliation_reads_is_not_due_for_a_while() {
        let secrets = of_a_start();
        secrets.record(&token(7), "ci-token", None, after(299));
        let due = secrets.due(after(300));
        assert!(due.len() == 999 && !due.contains(&Uuid::from_u128(7)), "{}", due.len());
    }
}
