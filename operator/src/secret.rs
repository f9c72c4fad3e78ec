//! Secrets of objects. One is made where there is none of its name, and changed where it is the
//! object's own; what anybody else made is never touched. Nothing is ever read from one into the
//! database: values are only compared.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::{ObjectMeta, Status};
use kube::{Api, ResourceExt as _};
use tempmail_crds::SecretTarget;
use tempmail_store::DeclareError;

use crate::context::Context;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::standing::{ConditionType, Outlook, Reason, Standing};

/// Label that tells whose it is, by uid.
const OWNER: &str = "tempmail.dev/owner-uid";
/// Label of what writes it.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tempmail-operator");
/// Status codes of answers that refuse a Secret for what it is, and would again.
const REFUSALS: [u16; 4] = [400, 403, 413, 422];
/// How refusals begin that the API server words itself: by quotas, by rights, and of namespaces that go.
const OWN_WORDS: [&str; 5] = [
    "exceeded quota: ",
    "failed quota: ",
    "status unknown for quota: ",
    "User \"",
    "unable to create new content",
];
/// How refusals begin that others word.
const OTHERS: [&str; 2] = ["admission webhook \"", "ValidatingAdmissionPolicy '"];
/// Who owns its fields.
const FIELD_MANAGER: &str = "tempmail-operator/secrets";

/// What there is under a Secret's name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// Nothing.
    Absent,
    /// A Secret that the object did not make.
    Foreign,
    /// The object's own.
    Own(Box<Secret>),
}

impl Found {
    /// The value of a key in the object's own Secret, if it is text.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let Self::Own(secret) = self else { return None };
        std::str::from_utf8(&secret.data.as_ref()?.get(key)?.0).ok()
    }

    /// Refused, where it can't be changed by anybody.
    fn is_writable(&self) -> Result<(), Refusal> {
        match self {
            Self::Own(secret) if secret.immutable == Some(true) => Err(Refusal::Immutable),
            _ => Ok(()),
        }
    }
}

/// The name of the object's Secret: the one that its spec says, else its own with `suffix`.
pub(crate) fn name_of<K: Kind>(object: &K, said: Option<&SecretTarget>, suffix: &str) -> String {
    said.map_or_else(|| format!("{}-{suffix}", object.name_any()), |secret| secret.name.clone())
}

/// Looks at the Secret `name` in the object's namespace. It is the object's own if the object is its
/// controller, and its label says so, too.
pub(crate) async fn find<K: Kind>(object: &K, name: &str, context: &Context) -> Result<Found, Failure> {
    let Some(secret) = api(object, context).get_opt(name).await? else { return Ok(Found::Absent) };
    let (uid, kind) = (object.uid().unwrap_or_default(), K::kind(&()));
    let is_controlled = secret.owner_references().iter().any(|owner| {
        owner.controller == Some(true)
            && owner.uid == uid
            && owner.kind == kind
            && owner.api_version == K::api_version(&())
    });
    let is_labelled = secret.labels().get(OWNER) == Some(&uid);
    Ok(if is_controlled && is_labelled { Found::Own(Box::new(secret)) } else { Found::Foreign })
}

/// What keeps a step from being carried out.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// There can be no such row.
    Row(DeclareError),
    /// The Secret can't be written.
    Secret(Refusal),
    /// It is tried again.
    Failure(Failure),
}

impl From<DeclareError> for Obstacle {
    fn from(refused: DeclareError) -> Self {
        Self::Row(refused)
    }
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Self {
        Self::Secret(refusal)
    }
}

impl<E: Into<Failure>> From<E> for Obstacle {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

/// Why a Secret can't be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its owner said that nobody changes it.
    Immutable,
    /// The API server does not take it, and says this of it.
    Denied(String),
}

impl Refusal {
    /// How an object stands whose Secret can't be written. It is tried again soon, since what is in
    /// the way tells nobody when it goes.
    pub(crate) fn standing<S>(self, status: S) -> Standing<S> {
        let standing = Standing::not_ready(status, self.reason(), Outlook::Stuck).soon();
        match self {
            Self::Immutable => standing,
            Self::Denied(why) => standing.explained(format!(
                "The API server refuses the Secret ({why}): change what is asked of Secrets in this namespace. \
                 It is tried again every minute."
            )),
        }
    }

    /// The reason of its condition.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Immutable => Reason::SecretImmutable,
            Self::Denied(_) => Reason::SecretRefused,
        }
    }
}

/// Whether these values could be written. Asked before a row changes, so that what can't be written ends
/// nothing; the API server is asked only where something is lost otherwise: a credential that `works`,
/// or time, since it refused the last time.
///
/// # Errors
/// As [`write`].
pub(crate) async fn check<K: Kind>(
    object: &K,
    name: &str,
    found: &Found,
    values: &[(&str, &str)],
    works: bool,
    context: &Context,
) -> Result<(), Obstacle> {
    if !works && !was_refused(object) {
        return Ok(found.is_writable()?);
    }
    send(object, name, found, values, true, context).await
}

/// Whether the last that was told of the object is that its Secret can't be written.
fn was_refused<K: Kind>(object: &K) -> bool {
    let conditions = object.status().map(K::conditions).unwrap_or_default();
    conditions
        .iter()
        .any(|one| one.type_ == ConditionType::Ready.as_str() && one.reason == Reason::SecretRefused.as_str())
}

/// Writes these values, and no others, over what was `found`. Whatever happened to the Secret since it was
/// found is a [`Failure::Stale`], and stays.
///
/// # Errors
/// [`Refusal`] where it is not taken; [`Failure`], also for one that is [`Found::Foreign`].
pub(crate) async fn write<K: Kind>(
    object: &K,
    name: &str,
    found: &Found,
    values: &[(&str, &str)],
    context: &Context,
) -> Result<(), Obstacle> {
    send(object, name, found, values, false, context).await
}

async fn send<K: Kind>(
    object: &K,
    name: &str,
    found: &Found,
    values: &[(&str, &str)],
    dry_run: bool,
    context: &Context,
) -> Result<(), Obstacle> {
    found.is_writable()?;
    let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let values: BTreeMap<String, ByteString> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
        .collect();
    let sent = match found {
        Found::Foreign => return Err(Failure::Stale.into()),
        Found::Absent => {
            let uid = object.uid().unwrap_or_default();
            let labels = [(MANAGED_BY.0, MANAGED_BY.1), (OWNER, &uid)];
            let secret = Secret {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                    owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                },
                data: Some(values),
                type_: Some("Opaque".to_owned()),
                ..Secret::default()
            };
            // A name that is taken meanwhile is a conflict.
            api(object, context).create(&parameters, &secret).await
        }
        Found::Own(secret) => {
            // Its uid and resourceVersion are those that were found: one that is another by now, or was
            // changed, is a conflict.
            let changed = Secret { data: Some(values), ..Secret::clone(secret) };
            match api(object, context).replace(name, &parameters, &changed).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => return Err(Failure::Stale.into()),
                sent => sent,
            }
        }
    };
    match sent {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if REFUSALS.contains(&status.code) => {
            Err(Refusal::Denied(told(&status, name)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// What the API server says of a refusal, as far as the words are its own: webhooks and policies may quote
/// the values, which readers of a status are not to see.
fn told(status: &Status, name: &str) -> String {
    let said = &status.message;
    let of_secret = said.strip_prefix(&format!("secrets \"{name}\" is forbidden: "));
    let own = of_secret.or_else(|| said.strip_prefix("secrets is forbidden: "));
    if let Some(own) = own.filter(|own| OWN_WORDS.iter().any(|begin| own.starts_with(begin))) {
        return own.to_owned();
    }
    let of_others = [own.unwrap_or_default(), said].into_iter().find_map(|said| {
        let (who, _) = said.split_once(" denied ")?;
        OTHERS.iter().any(|begin| who.starts_with(begin)).then_some(who)
    });
    of_others.map_or_else(|| format!("{} {}", status.code, status.reason), |who| format!("{who} denies it"))
}

fn api<K: Kind>(object: &K, context: &Context) -> Api<Secret> {
    Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default())
}
