//! What every reconciliation has at hand.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::events::Reporter;
use kube::runtime::reflector;
use kube::{Api, Client, ResourceExt as _};
use tempmail_crds::Tenant;
use tempmail_model::clock::Clock;
use tempmail_model::sealed::SecretSealer;
use tempmail_model::verify_token::VerifyTokens;
use tempmail_runtime::config::Config;
use tempmail_store::{ChangeSnapshot, Epoch, ResourceKind, Store};
use tempmail_verification::Verifier;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Operator;
use crate::backoff::Backoff;
use crate::kind::Kind;
use crate::mailbox::Fits;
use crate::tenancy::Dependents;
use crate::tenant::Recounts;
use crate::trigger::{Receivers, Triggers};

/// Reporting controller of the events.
const CONTROLLER: &str = "tempmail.dev/operator";

/// Shared by all controllers of a leader.
pub(crate) struct Context {
    pub config: Arc<Config>,
    pub client: Client,
    pub store: Store,
    /// Under which it writes.
    pub epoch: Epoch,
    /// `metadata.uid` of the namespace kube-system.
    pub cluster: Uuid,
    pub clock: Arc<dyn Clock>,
    pub verifier: Verifier,
    pub verify_tokens: VerifyTokens,
    pub sealer: SecretSealer,
    /// Who tells of events.
    pub reporter: Reporter,
    pub backoff: Backoff,
    pub triggers: Triggers,
    /// The Tenants there are.
    pub tenants: reflector::Store<DeserializeGuard<Tenant>>,
    /// The namespaces there are.
    pub namespaces: reflector::Store<PartialObjectMeta<Namespace>>,
    /// Each cancelled once all objects of the kind were read.
    pub known: HashMap<ResourceKind, CancellationToken>,
    /// Cancelled once all namespaces were read.
    pub namespaces_known: CancellationToken,
    /// What refers to Tenants, by kind; set when the controllers begin.
    pub dependents: OnceLock<Vec<Dependents>>,
    /// Tenants whose usage is to be counted.
    pub recounts: Recounts,
    /// Which Secrets hold the password of their mailbox.
    pub fits: Fits,
    /// Cancelled when another operator leads.
    pub fenced: CancellationToken,
}

/// Where what was read of the API server goes.
pub(crate) struct Writers {
    pub tenants: reflector::store::Writer<DeserializeGuard<Tenant>>,
    pub namespaces: reflector::store::Writer<PartialObjectMeta<Namespace>>,
    pub told: Receivers,
    /// Where the feed of changes stood before any object was looked at.
    pub seen: ChangeSnapshot,
}

impl Context {
    /// Begins to lead.
    pub(crate) async fn begin(operator: Operator) -> anyhow::Result<(Self, Writers)> {
        let Operator { config, store, clock, keys, client, readiness: _ } = operator;
        let epoch = store.acquire_epoch().await.context("the epoch of the leader")?;
        let (_, seen) = store.list_changed_resources(None).await.context("the changes of rows")?;
        let system: Api<Namespace> = Api::all(client.clone());
        let system = system.get_metadata("kube-system").await.context("the namespace kube-system")?;
        let cluster = system.uid().and_then(|uid| uid.parse().ok()).context("kube-system has no uid")?;
        let (triggers, told) = Triggers::new();
        let (tenants, tenants_writer) = reflector::store();
        let (namespaces, namespaces_writer) = reflector::store();
        let context = Self {
            verifier: Verifier::new(&config, store.clone(), Arc::clone(&clock)),
            verify_tokens: VerifyTokens::new(keys.first().context("`secrets.keys` is empty")?),
            sealer: SecretSealer::new(&keys),
            reporter: Reporter { controller: CONTROLLER.to_owned(), instance: None },
            backoff: Backoff::default(),
            known: ResourceKind::ALL.into_iter().map(|kind| (kind, CancellationToken::new())).collect(),
            namespaces_known: CancellationToken::new(),
            dependents: OnceLock::new(),
            recounts: Recounts::default(),
            fits: Fits::default(),
            fenced: CancellationToken::new(),
            config,
            client,
            store,
            epoch,
            cluster,
            clock,
            triggers,
            tenants,
            namespaces,
        };
        Ok((context, Writers { tenants: tenants_writer, namespaces: namespaces_writer, told, seen }))
    }

    /// Has the usage of the tenant counted that an object refers to, if it refers to one.
    pub(crate) fn recount_of<K: Kind>(&self, object: &K) {
        if let Some(tenant) = object.tenant_name() {
            self.recounts.ask(tenant);
        }
    }
}
