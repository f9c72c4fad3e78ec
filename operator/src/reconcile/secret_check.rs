//! Checks whether the Secrets of objects were deleted or changed since they were looked at. The operator may not list or watch
//! Secrets, so it gets the metadata of each that no reconciliation has read for a while.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt as _};
use tempmail_model::chance;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::context::Context;
use super::work_queue::ObjectKey;
use crate::kind::{Kind, uid};

/// Interval at which the Secrets that are due are checked.
const TICK: Duration = Duration::from_secs(1);
/// Pause after a request that failed, so that an API server that is overloaded or away is not asked in vain.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// Checks Secrets as they become due, one after the other, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(check_due(&context)).await.is_some() {
        if stop.run_until_cancelled(sleep(TICK)).await.is_none() {
            return;
        }
    }
}

async fn check_due(context: &Context) {
    for object in context.seen_secrets.due(context.clock.now()) {
        let checked = check(object, context).await;
        let result = match checked {
            Ok(false) => "unchanged",
            Ok(true) => "changed",
            Err(_) => "error",
        };
        metrics::counter!("tempmail_operator_secret_checks_total", "result" => result).increment(1);
        if let Err(error) = checked {
            tracing::warn!(%error, "Secrets can't be checked, which is retried");
            sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

/// Has an object reconciled whose Secret is another one than was seen, or may not be read any more. Returns whether it is.
async fn check(object: Uuid, context: &Context) -> Result<bool, kube::Error> {
    let Some(seen) = context.seen_secrets.get(object) else { return Ok(false) };
    let namespace = seen.object.namespace.as_deref().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let is_same = match secrets.get_metadata_opt(&seen.name).await {
        Ok(found) => found.map(|found| SecretVersion::of(&found.metadata)) == seen.version,
        Err(kube::Error::Api(status)) if status.is_forbidden() => false,
        Err(error) => return Err(error),
    };
    if is_same {
        context.seen_secrets.postpone(object, context.clock.now());
        return Ok(false);
    }
    if !context.seen_secrets.take(object, &seen) {
        return Ok(false);
    }
    context.kinds.enqueue(&seen.kind, seen.object);
    Ok(true)
}

/// The Secret of an object as its reconciliation saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenSecret {
    pub kind: Cow<'static, str>,
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
            kind: K::kind(&()),
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
