//! Secrets of objects. A Secret is created where none has its name, and updated where the object owns it. A
//! Secret of another owner is never changed. Values are compared with the database, and never copied into it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::{ObjectMeta, Status};
use kube::{Api, ResourceExt as _};
use tempmail_crds::{KindStatus, SecretTarget};

use super::context::Context;
use super::refusal::StepError;
use crate::error::ReconcileError;
use crate::kind::Kind;
use crate::status::message::{
    secret_immutable, secret_refused, secret_rotated, secret_unreadable, secret_written,
};
use crate::status::{ConditionStatus, ConditionType, Message, Progress, Reason, StatusUpdate, has_condition};

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
    let conditions = object.status().map(KindStatus::conditions).unwrap_or_default();
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

/// Status codes of responses that reject a Secret for its content, and would again.
const REJECTIONS: [u16; 4] = [400, 403, 413, 422];
/// Prefixes of messages that the API server words itself: about quotas, permissions, and namespaces that are
/// being deleted.
const API_SERVER_MESSAGES: [&str; 5] = [
    "exceeded quota: ",
    "failed quota: ",
    "status unknown for quota: ",
    "User \"",
    "unable to create new content",
];
/// Prefixes of messages that admission plugins word.
const ADMISSION_MESSAGES: [&str; 2] = ["admission webhook \"", "ValidatingAdmissionPolicy '"];

/// Why a Secret can't be written, or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretError {
    /// The Secret is immutable.
    Immutable,
    /// The API server rejects it, with this message.
    Rejected(String),
    /// The API server does not let the operator read it, with this message.
    Unreadable(String),
}

impl SecretError {
    /// The error in the response to a write of the Secret `name`, if the response rejects its content.
    pub(super) fn from_response(status: &Status, name: &str) -> Option<Self> {
        REJECTIONS.contains(&status.code).then(|| Self::Rejected(message(status, name)))
    }

    /// The error in the response to a read of the Secret `name` that is not permitted.
    pub(super) fn unreadable(status: &Status, name: &str) -> Self {
        Self::Unreadable(message(status, name))
    }

    /// The status of an object whose Secret of this name can't be used. It is retried soon, since what
    /// prevents it may change without a notification.
    pub(crate) fn status_update<S>(&self, status: S, secret: &str) -> StatusUpdate<S> {
        StatusUpdate::not_ready(status, self.message(secret), Progress::Stalled).retry_soon()
    }

    /// The message about the Secret of this name.
    pub(crate) fn message(&self, secret: &str) -> Message {
        match self {
            Self::Immutable => secret_immutable(secret),
            Self::Rejected(why) => secret_refused(secret, why),
            Self::Unreadable(why) => secret_unreadable(secret, why),
        }
    }
}

/// The message of a rejection as far as the API server words it itself. Admission webhooks and policies may
/// quote the values, which readers of a status must not see.
fn message(status: &Status, name: &str) -> String {
    let message = &status.message;
    let about_secret = message.strip_prefix(&format!("secrets \"{name}\" is forbidden: "));
    let inner = about_secret.or_else(|| message.strip_prefix("secrets is forbidden: "));
    if let Some(inner) =
        inner.filter(|inner| API_SERVER_MESSAGES.iter().any(|prefix| inner.starts_with(prefix)))
    {
        return inner.to_owned();
    }
    let plugin = [inner.unwrap_or_default(), message].into_iter().find_map(|message| {
        let (plugin, _) = message.split_once(" denied ")?;
        ADMISSION_MESSAGES.iter().any(|prefix| plugin.starts_with(prefix)).then_some(plugin)
    });
    plugin
        .map_or_else(|| format!("{} {}", status.code, status.reason), |plugin| format!("{plugin} denies it"))
}

/// The credential that the current reconciliation issued, if any. Outside of its Secret a credential exists
/// only here, and only until the reconciliation ends: the row holds a hash.
#[derive(Default)]
pub(crate) struct Issued(Option<Credential>);

struct Credential {
    value: String,
    /// What the row stores of the value.
    hash: Vec<u8>,
    /// Whether a credential was active that this one replaces.
    replaces: bool,
}

impl Issued {
    /// Keeps a credential whose `hash` is in the row.
    pub(crate) fn set(&mut self, value: &str, hash: &[u8], replaces: bool) {
        self.0 = Some(Credential { value: value.to_owned(), hash: hash.to_owned(), replaces });
    }

    /// The credential with the hash that the row stores, if this reconciliation issued it.
    pub(crate) fn value(&self, hash: &[u8]) -> Option<&str> {
        self.0.as_ref().filter(|credential| credential.hash == hash).map(|credential| &*credential.value)
    }

    /// Whether the credential replaces one that was active.
    pub(crate) fn replaces(&self) -> bool {
        self.0.as_ref().is_some_and(|credential| credential.replaces)
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issued").field(&self.0.is_some()).finish()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(code: u16, message: &str) -> Option<SecretError> {
        let status =
            Status { code, reason: "Forbidden".to_owned(), message: message.to_owned(), ..Status::default() };
        SecretError::from_response(&status, "ci-token")
    }

    fn why(message: &str) -> Option<SecretError> {
        Some(SecretError::Rejected(message.to_owned()))
    }

    #[test]
    fn shows_what_the_api_server_says_itself() {
        let message = "secrets \"ci-token\" is forbidden: exceeded quota: few, requested: secrets=1";
        assert_eq!(rejected(403, message), why("exceeded quota: few, requested: secrets=1"));
    }

    #[test]
    fn hides_what_admission_plugins_say() {
        let message = "admission webhook \"w.example\" denied the request: it has c2VjcmV0";
        assert_eq!(rejected(403, message), why("admission webhook \"w.example\" denies it"));
        assert_eq!(rejected(403, "it has c2VjcmV0"), why("403 Forbidden"));
    }

    #[test]
    fn takes_other_codes_for_failures() {
        for code in [401, 409, 429, 500, 503] {
            assert_eq!(rejected(code, ""), None, "{code}");
        }
    }

    #[test]
    fn returns_the_value_only_for_the_hash_of_the_row() {
        let mut issued = Issued::default();
        assert_eq!(issued.value(b"hash"), None);
        issued.set("value", b"hash", true);
        assert_eq!(issued.value(b"hash"), Some("value"));
        assert_eq!(issued.value(b"another"), None);
        assert!(issued.replaces());
        assert!(!format!("{issued:?}").contains("value"));
    }
}
