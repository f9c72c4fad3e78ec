//! Watches the namespaces and their labels, which grants depend on.

use std::sync::Arc;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use crate::reconcile::cache;
use crate::reconcile::context::Context;
use crate::reconcile::watched_kind::Dependency;

/// Fills the cache of namespaces, and enqueues the objects of a namespace when its labels change, until `stop`
/// is cancelled. Namespaces that are gone or have other labels may have lost grants. An operator that is restricted to
/// namespaces watches these alone, each by its name.
pub(crate) async fn run(
    writer: Writer<PartialObjectMeta<Namespace>>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let all = watcher::Config::default().any_semantic();
    let watches = match &*context.config.operator.watch_namespaces {
        [] => vec![(api, all)],
        names => {
            let one = |name: &str| all.clone().fields(&format!("metadata.name={name}"));
            names.iter().map(|name| (api.clone(), one(name))).collect()
        }
    };
    let (synced, watching) = (context.namespaces_synced.clone(), Arc::clone(&context));
    let observe = move |event: &watcher::Event<_>| {
        if matches!(event, watcher::Event::Delete(_) | watcher::Event::InitDone) {
            watching.grant_changes.notify_one();
        }
    };
    let changes = cache::watch(watches, remove_unread, writer, synced, observe)
        .predicate_filter(predicates::labels, PredicateConfig::default())
        .take_until(stop.cancelled_owned());
    let mut changes = std::pin::pin!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Ok(namespace) => {
                context.grant_changes.notify_one();
                context.kinds.enqueue_dependents(Dependency::Namespace(&namespace.name_any()));
            }
            Err(error) => tracing::warn!(%error, "the watch of namespaces failed, and is restarted"),
        }
    }
}

/// Removes everything but the labels.
fn remove_unread(namespace: &mut PartialObjectMeta<Namespace>) {
    namespace.managed_fields_mut().clear();
    namespace.annotations_mut().clear();
}
