//! Which tenant an object may refer to: its Tenant must allow the object's namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, ObjectRef, store::Writer};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, Resource as _, ResourceExt as _};
use tempmail_crds::Tenant;
use tempmail_store::ResourceKind;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::Context;
use crate::controller::{once_known, uid};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::standing::{Outlook, Reason};
use crate::trigger::ObjectKey;

/// The label that the API server keeps equal to a namespace's name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// A tenant that is missing for no longer is on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(60);
/// An object waits no longer at a time until Tenants and namespaces are read.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Whether an object may refer to its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenancy {
    /// It may, and this is the tenant's id.
    Permitted(Uuid),
    /// It may, but the tenant is still to be made.
    NotReady,
    /// There is no such Tenant, or it does not allow the namespace: which of both is nobody's business.
    NotPermitted(Outlook),
}

impl Tenancy {
    /// The tenant's id, or why nothing is made for the object.
    pub(crate) fn permitted(self) -> Result<Uuid, (Reason, Outlook)> {
        match self {
            Self::Permitted(tenant) => Ok(tenant),
            Self::NotReady => Err((Reason::TenantNotReady, Outlook::Waits)),
            Self::NotPermitted(outlook) => Err((Reason::TenantRefNotPermitted, outlook)),
        }
    }
}

/// The tenant that an object refers to, if it may.
pub(crate) async fn resolve<K: Kind>(object: &K, context: &Context) -> Result<Tenancy, Failure> {
    let age = context
        .clock
        .now()
        .duration_since(object.creation_timestamp().map_or(context.clock.now(), |created| created.0));
    let outlook = if age.unsigned_abs() < ON_ITS_WAY { Outlook::Waits } else { Outlook::Stuck };
    let Some(tenant) = allowing(object, context).await? else { return Ok(Tenancy::NotPermitted(outlook)) };
    let resource = context.store.find_resource(uid(&*tenant)).await?;
    Ok(resource.and_then(|resource| resource.row_id).map_or(Tenancy::NotReady, Tenancy::Permitted))
}

/// The object's Tenant, if it is there and allows the namespace.
async fn allowing<K: Kind>(
    object: &K,
    context: &Context,
) -> Result<Option<Arc<DeserializeGuard<Tenant>>>, Failure> {
    // What was not read yet is not missing.
    for known in [&context.known[&ResourceKind::Tenant], &context.namespaces_known] {
        timeout(READ_WITHIN, known.cancelled()).await.map_err(|_late| Failure::Unread)?;
    }
    let tenant = object.tenant_name().and_then(|name| context.tenants.get(&ObjectRef::new(name)));
    let namespace = object.namespace().and_then(|name| context.namespaces.get(&ObjectRef::new(&name)));
    let (Some(tenant), Some(namespace)) = (tenant, namespace) else { return Ok(None) };
    if tenant.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let spec = &tenant.0.as_ref().map_err(|_undecodable| Failure::Unread)?.spec;
    let selector = spec.allowed_namespaces.as_ref();
    let is_allowed =
        selector.is_some_and(|selector| selects(selector, &namespace.name_any(), namespace.labels()));
    Ok(is_allowed.then_some(tenant))
}

/// Whether a selector selects a namespace. Unlike elsewhere in Kubernetes an empty one selects none. The
/// label with the name is the name itself, whatever the labels say.
fn selects(selector: &LabelSelector, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| if key == NAME_LABEL { Some(name) } else { labels.get(key).map(String::as_str) };
    let exact = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    let is_empty = exact.clone().next().is_none() && expressions.clone().next().is_none();
    !is_empty
        && exact.into_iter().all(|(key, value)| label(key) == Some(value.as_str()))
        && expressions.into_iter().all(|expression| {
            let value = label(&expression.key);
            let listed =
                || value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// Objects that refer to tenants.
pub(crate) struct Dependents {
    kind: ResourceKind,
    list: Box<List>,
}

/// Lists those that match.
type List = dyn Fn(&Of<'_>) -> Vec<ObjectKey> + Send + Sync;

/// Whose dependents.
pub(crate) enum Of<'a> {
    Tenant(&'a str),
    Namespace(&'a str),
    Domain(&'a str),
}

/// Those of one kind.
pub(crate) fn dependents<K: Kind>(objects: reflector::Store<DeserializeGuard<K>>) -> Dependents {
    let list = move |of: &Of<'_>| {
        let is_meant = |object: &DeserializeGuard<K>| match (of, &object.0) {
            (Of::Tenant(name), Ok(object)) => object.tenant_name() == Some(name),
            (Of::Namespace(name), _) => object.namespace().as_deref() == Some(name),
            (Of::Domain(name), Ok(object)) => object.domain_name() == Some(name),
            (Of::Tenant(_) | Of::Domain(_), Err(_)) => false,
        };
        let meant = objects.state_filter(is_meant);
        meant
            .iter()
            .map(|object| ObjectKey { namespace: object.namespace(), name: object.name_any() })
            .collect()
    };
    Dependents { kind: K::KIND, list: Box::new(list) }
}

impl Context {
    /// Has the controllers look at what refers to a tenant, is in a namespace, or asks for a domain.
    pub(crate) fn pull_dependents(&self, of: &Of<'_>) {
        for dependents in self.dependents.get().into_iter().flatten() {
            for key in (dependents.list)(of) {
                self.triggers.pull(dependents.kind, key);
            }
        }
    }
}

/// Follows the namespaces and their labels.
pub(crate) async fn follow_namespaces(
    writer: Writer<PartialObjectMeta<Namespace>>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let changes = watcher(api, watcher::Config::default().any_semantic())
        .default_backoff()
        .modify(|namespace| {
            namespace.managed_fields_mut().clear();
            namespace.annotations_mut().clear();
        })
        .reflect(writer)
        .inspect_ok({
            let known = context.namespaces_known.clone();
            move |event| once_known(event, &known)
        })
        .applied_objects()
        .predicate_filter(predicates::labels, PredicateConfig::default())
        .take_until(stop.cancelled_owned());
    let mut changes = std::pin::pin!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Ok(namespace) => context.pull_dependents(&Of::Namespace(&namespace.name_any())),
            Err(error) => tracing::warn!(%error, "the watch of namespaces broke, and is begun anew"),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn exactly(pairs: &[(&str, &str)]) -> LabelSelector {
        LabelSelector { match_labels: Some(labels(pairs)), match_expressions: None }
    }

    fn expressions(of: &[(&str, &str, &[&str])]) -> LabelSelector {
        let requirement = |&(key, operator, values): &(&str, &str, &[&str])| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: Some(values.iter().map(|&value| value.to_owned()).collect()),
        };
        let list = of.iter().map(requirement).collect();
        LabelSelector { match_labels: None, match_expressions: Some(list) }
    }

    #[test]
    fn an_empty_selector_selects_none() {
        let empty = [
            LabelSelector::default(),
            exactly(&[]),
            expressions(&[]),
            LabelSelector { match_labels: Some(labels(&[])), match_expressions: Some(Vec::new()) },
        ];
        for selector in empty {
            assert!(!selects(&selector, "shop", &labels(&[("team", "shop")])), "{selector:?}");
        }
    }

    #[test]
    fn every_operator_means_what_it_means_elsewhere() {
        let team = labels(&[("team", "shop")]);
        let cases: &[(&str, &str, &[&str], bool)] = &[
            ("team", "In", &["ship", "shop"], true),
            ("team", "In", &["ship"], false),
            ("team", "In", &[], false),
            ("tier", "In", &["shop"], false),
            ("team", "NotIn", &["ship"], true),
            ("team", "NotIn", &["shop"], false),
            ("tier", "NotIn", &["shop"], true),
            ("team", "Exists", &[], true),
            ("tier", "Exists", &[], false),
            ("team", "DoesNotExist", &[], false),
            ("tier", "DoesNotExist", &[], true),
            ("team", "Near", &["shop"], false),
        ];
        for &(key, operator, values, expected) in cases {
            let selector = expressions(&[(key, operator, values)]);
            assert_eq!(selects(&selector, "shop-1", &team), expected, "{key} {operator} {values:?}");
        }
        assert!(selects(&exactly(&[("team", "shop")]), "shop-1", &team));
        assert!(!selects(&exactly(&[("team", "ship")]), "shop-1", &team));
        assert!(!selects(&exactly(&[("team", "shop"), ("tier", "a")]), "shop-1", &team), "all must hold");
        let mut both = expressions(&[("team", "Exists", &[])]);
        both.match_labels = Some(labels(&[("team", "ship")]));
        assert!(!selects(&both, "shop-1", &team), "labels and expressions must hold");
    }

    #[test]
    fn the_label_with_the_name_is_the_name_whatever_the_labels_say() {
        let forged = labels(&[(NAME_LABEL, "shop")]);
        let (by_value, by_label) =
            (expressions(&[(NAME_LABEL, "In", &["shop"])]), exactly(&[(NAME_LABEL, "shop")]));
        for selector in [by_value, by_label] {
            assert!(selects(&selector, "shop", &labels(&[])), "{selector:?}");
            assert!(!selects(&selector, "thief", &forged), "{selector:?}");
        }
        assert!(!selects(&expressions(&[(NAME_LABEL, "DoesNotExist", &[])]), "shop", &labels(&[])));
    }
}
