//! Watches the namespaces and their labels, which grants depend on.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use crate::reconcile::context::Context;
use crate::reconcile::dependents::Dependency;

/// Fills the cache of namespaces, and enqueues the objects of a namespace when its labels change, until `stop`
/// is cancelled.
pub(crate) async fn run(
    writer: Writer<PartialObjectMeta<Namespace>>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let synced = context.cache_syncs.namespaces.clone();
    let changes = watcher(api, watcher::Config::default().any_semantic())
        .default_backoff()
        .modify(|namespace| {
            namespace.managed_fields_mut().clear();
            namespace.annotations_mut().clear();
        })
        .reflect(writer)
        .inspect_ok(move |event| synced.observe(event))
        .applied_objects()
        .predicate_filter(predicates::labels, PredicateConfig::default())
        .take_until(stop.cancelled_owned());
    let mut changes = std::pin::pin!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Ok(namespace) => context.enqueue_dependents(Dependency::Namespace(&namespace.name_any())),
            Err(error) => tracing::warn!(%error, "the watch of namespaces failed, and is restarted"),
        }
    }
}
