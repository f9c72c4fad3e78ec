//! Secrets of objects. A Secret is created where none has its name, and updated where the object owns it. A
//! Secret of another owner is never changed. Values are compared with the database, and never copied into it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt as _};
use tempmail_crds::SecretTarget;

use super::context::Context;
use super::refusal::StepError;
use super::secret_error::SecretError;
use crate::error::ReconcileError;
use crate::kind::Kind;
use crate::status::message::{secret_rotated, secret_written};
use crate::status::{ConditionStatus, ConditionType, Reason, has_condition};

/// Label with the uid of the owner.
const OWNER: &str = "tempmail.dev/owner-uid";
/// Label of the operator.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tempmail-operator");
/// Field manager of Secrets.
const FIELD_MANAGER: &str = "tempmail-operator/secrets";

/// What exists under the name of an object's Secret.
#[derive(Clone, PartialEq)]
pub(crate) enum FoundSecret {
    /// No Secret.
    Absent,
    /// A Secret that the object does not own.
    Foreign,
    /// The object's own Secret.
    Owned(Box<Secret>),
    /// The API server does not let the operator read it.
    Unreadable(SecretError),
}

impl fmt::Debug for FoundSecret {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Foreign => "Foreign",
            Self::Owned(_) => "Owned",
            Self::Unreadable(_) => "Unreadable",
        })
    }
}

impl FoundSecret {
    /// The value of a key in the object's own Secret, if it is text.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let Self::Owned(secret) = self else { return None };
        std::str::from_utf8(&secret.data.as_ref()?.get(key)?.0).ok()
    }

    fn ensure_mutable(&self) -> Result<(), SecretError> {
        match self {
            Self::Owned(secret) if secret.immutable == Some(true) => Err(SecretError::Immutable),
            _ => Ok(()),
        }
    }
}

/// The name of the object's Secret: the one in its spec, or the object's name with `suffix`.
pub(crate) fn name_of<K: Kind>(object: &K, target: Option<&SecretTarget>, suffix: &str) -> String {
    target.map_or_else(|| format!("{}-{suffix}", object.name_any()), |target| target.name.clone())
}

/// Reads the Secret `name` in the object's namespace, and has it checked from now on. The object owns it if the object is its
/// controller and its label has the object's uid.
pub(crate) async fn find<K: Kind>(
    object: &K,
    name: &str,
    context: &Context,
) -> Result<FoundSecret, ReconcileError> {
    let found = match api(object, context).get_opt(name).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            return Ok(FoundSecret::Unreadable(SecretError::unreadable(&status, name)));
        }
        Err(error) => return Err(error.into()),
    };
    let metadata = found.as_ref().map(|secret| &secret.metadata);
    context.seen_secrets.record(object, name, metadata, context.clock.now());
    let Some(secret) = found else { return Ok(FoundSecret::Absent) };
    let (uid, kind) = (object.uid().unwrap_or_default(), K::kind(&()));
    let is_controlled = secret.owner_references().iter().any(|owner| {
        owner.controller == Some(true)
            && owner.uid == uid
            && owner.kind == kind
            && owner.api_version == K::api_version(&())
    });
    let is_labelled = secret.labels().get(OWNER) == Some(&uid);
    Ok(if is_controlled && is_labelled { FoundSecret::Owned(Box::new(secret)) } else { FoundSecret::Foreign })
}

/// Checks that these values could be written, before a row changes. The API server is asked, by a dry run, only
/// if a rejection would cost something otherwise: an active credential (`replaces`), or, after a rejection, a
/// new row on each retry.
///
/// # Errors
/// As [`write`].
pub(crate) async fn check<K: Kind>(
    object: &K,
    name: &str,
    found: &FoundSecret,
    values: &[(&str, &str)],
    replaces: bool,
    context: &Context,
) -> Result<(), StepError> {
    if !replaces && !was_rejected(object) {
        return Ok(found.ensure_mutable()?);
    }
    send(object, name, found, values, true, context).await
}

/// Whether the status says that the Secret was rejected.
fn was_rejected<K: Kind>(object: &K) -> bool {
    let conditions = object.status().map(K::conditions).unwrap_or_default();
    let reason = Some(Reason::SecretRefused);
    has_condition(conditions, ConditionType::Ready, ConditionStatus::False, reason)
}

/// Replaces what was `found` by a Secret with exactly these values.
///
/// # Errors
/// A refusal if the Secret is immutable or rejected. [`ReconcileError::Stale`] if the Secret changed since it
/// was found, or is none that the operator can write.
pub(crate) async fn write<K: Kind>(
    object: &K,
    name: &str,
    found: &FoundSecret,
    values: &[(&str, &str)],
    context: &Context,
) -> Result<(), StepError> {
    send(object, name, found, values, false, context).await
}

/// Publishes that the Secret was written; with a value that `replaces` another one, which is refused from now on.
pub(crate) async fn publish_written<K: Kind>(object: &K, name: &str, replaces: bool, context: &Context) {
    let message = if replaces { secret_rotated(name) } else { secret_written(name) };
    context.events.publish(object, &message).await;
}

async fn send<K: Kind>(
    object: &K,
    name: &str,
    found: &FoundSecret,
    values: &[(&str, &str)],
    dry_run: bool,
    context: &Context,
) -> Result<(), StepError> {
    found.ensure_mutable()?;
    let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let data: BTreeMap<String, ByteString> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
        .collect();
    let api = api(object, context);
    let sent = match found {
        FoundSecret::Foreign | FoundSecret::Unreadable(_) => return Err(ReconcileError::Stale.into()),
        // A conflict if the name was taken meanwhile.
        FoundSecret::Absent => api.create(&parameters, &new_secret(object, name, data)).await,
        // A conflict if the uid or the resourceVersion changed meanwhile.
        FoundSecret::Owned(secret) => {
            let changed = Secret { data: Some(data), ..Secret::clone(secret) };
            api.replace(name, &parameters, &changed).await
        }
    };
    match sent {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() && matches!(found, FoundSecret::Owned(_)) => {
            Err(ReconcileError::Stale.into())
        }
        Err(kube::Error::Api(status)) => match SecretError::from_response(&status, name) {
            Some(error) => Err(error.into()),
            None => Err(kube::Error::Api(status).into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn new_secret<K: Kind>(object: &K, name: &str, data: BTreeMap<String, ByteString>) -> Secret {
    let uid = object.uid().unwrap_or_default();
    let labels = [(MANAGED_BY.0, MANAGED_BY.1), (OWNER, &uid)];
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(data),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

fn api<K: Kind>(object: &K, context: &Context) -> Api<Secret> {
    Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default())
}

/// For the tests of plans.
#[cfg(test)]
pub(crate) mod example {
    use super::*;

    /// All that may be found.
    pub(crate) fn all_found() -> Vec<FoundSecret> {
        let unreadable = SecretError::Unreadable("it is not permitted".to_owned());
        vec![
            FoundSecret::Absent,
            FoundSecret::Foreign,
            FoundSecret::Owned(Box::default()),
            FoundSecret::Unreadable(unreadable),
        ]
    }

    /// Whether the operator may write what was found.
    pub(crate) fn is_writable(found: &FoundSecret) -> bool {
        matches!(found, FoundSecret::Absent | FoundSecret::Owned(_))
    }
}
