//! Secrets of objects. One is made where there is none of its name, and changed where it is the
//! object's own; what anybody else made is never touched. Nothing is ever read from one into the
//! database: values are only compared.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt as _};
use tempmail_crds::SecretTarget;

use crate::context::Context;
use crate::failure::Failure;
use crate::kind::Kind;

/// Label that tells whose it is, by uid.
const OWNER: &str = "tempmail.dev/owner-uid";
/// Label of what writes it.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tempmail-operator");
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

/// Writes these values, and no others, over what was `found`. Whatever happened to the Secret since it
/// was found is a [`Failure::Stale`], and stays.
///
/// # Errors
/// [`Failure`]; also for one that is [`Found::Foreign`].
pub(crate) async fn write<K: Kind>(
    object: &K,
    name: &str,
    found: &Found,
    values: &[(&str, &str)],
    context: &Context,
) -> Result<(), Failure> {
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let values: BTreeMap<String, ByteString> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
        .collect();
    match found {
        Found::Foreign => return Err(Failure::Stale),
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
            api(object, context).create(&parameters, &secret).await?;
        }
        Found::Own(secret) => {
            // Its uid and resourceVersion are those that were found: one that is another by now, or was
            // changed, is a conflict.
            let changed = Secret { data: Some(values), ..Secret::clone(secret) };
            match api(object, context).replace(name, &parameters, &changed).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => return Err(Failure::Stale),
                written => drop(written?),
            }
        }
    }
    Ok(())
}

fn api<K: Kind>(object: &K, context: &Context) -> Api<Secret> {
    Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default())
}
