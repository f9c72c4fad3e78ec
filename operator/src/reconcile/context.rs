//! The state that all controllers of a leader share.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector;
use tempmail_model::clock::Clock;
use tempmail_model::verify_token::VerifyTokenKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Config;
use tempmail_store::{Epoch, Store};
use tempmail_verification::Verifier;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backoff::Backoff;
use super::cache::CacheSync;
use super::secret_check::SeenSecrets;
use super::usage_refresh::UsageRefreshQueue;
use super::watched_kind::WatchedKinds;
use crate::kind::Kind;
use crate::password::PasswordCheckCache;
use crate::status::{EventPublisher, StatusWriter};

/// Shared by all controllers of a leader.
pub(crate) struct Context {
    pub config: Arc<Config>,
    pub client: Client,
    pub store: Store,
    /// The epoch of this leader, under which it writes.
    pub epoch: Epoch,
    /// The cluster: `metadata.uid` of the namespace kube-system.
    pub cluster: Uuid,
    pub clock: Arc<dyn Clock>,
    pub verifier: Arc<Verifier>,
    pub verify_tokens: VerifyTokenKey,
    pub sealer: WebhookSecretSealer,
    pub status: StatusWriter,
    pub events: EventPublisher,
    pub backoff: Backoff,
    pub kinds: WatchedKinds,
    /// The cached namespaces.
    pub namespaces: reflector::Store<PartialObjectMeta<Namespace>>,
    /// Whether `namespaces` holds all that are watched.
    pub namespaces_synced: CacheSync,
    /// Notified when Tenants or namespaces may allow less than before.
    pub grant_changes: Notify,
    pub usage_refresh: UsageRefreshQueue,
    pub password_checks: PasswordCheckCache,
    /// The Secrets that reconciliations saw.
    pub seen_secrets: SeenSecrets,
    /// Cancelled when another operator leads.
    pub fenced: CancellationToken,
}

impl Context {
    /// Has the usage of the tenant refreshed that an object refers to, if any.
    pub(crate) fn refresh_usage<K: Kind>(&self, object: &K) {
        if let Some(tenant) = object.tenant_name() {
            self.usage_refresh.enqueue(tenant);
        }
    }
}
