//! What every handler works with.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tempmail_admission::{ClientNetwork, Shares};
use tempmail_bus::SharedBus;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::clock::Clock;
use tempmail_model::cursor::CursorSealer;
use tempmail_model::document::DocumentSealer;
use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::VerifyTokenKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::{Config, Http};
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{Generation, Store};
use tempmail_verification::{TokenKeyError, Verifier, verify_token_key};
use uuid::Uuid;

use crate::arrivals::{Arrivals, STALE_AFTER};
use crate::auth::{Authenticator, Passwords, UnusedSignInLink};
use crate::http::gates::Gates;
use crate::http::rate_limit::RequestLimits;
use crate::message::{Deletion, MessageRenderer, UsedDocuments};

/// How long a statement of a request may take, with the time until there is a connection for it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks of domains that tenants request at once: one of a domain with silent name servers takes seconds.
const DOMAIN_CHECKS: usize = 256;

/// Time between two attempts to reach Postgres at the start.
const RETRY: Duration = Duration::from_secs(1);

/// The state of one API server. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct AppState(Arc<App>);

/// See [`AppState`].
pub(crate) struct App {
    /// All settings.
    pub(crate) config: Arc<Config>,
    /// The source of truth.
    pub(crate) store: Store,
    /// The same for subscribers: an answer that takes longer than [`STALE_AFTER`] may be about rights that have ended.
    pub(crate) stream_store: Store,
    /// Hints of arrivals, permits and counters that processes share.
    pub(crate) bus: SharedBus,
    /// Business time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Seals and opens `next_since`.
    pub(crate) cursors: CursorSealer,
    /// Seals and opens the addresses of documents.
    pub(crate) documents: DocumentSealer,
    /// Addresses of documents that were used.
    pub(crate) used_documents: UsedDocuments,
    /// Seals the secrets of webhooks.
    pub(crate) webhook_secrets: WebhookSecretSealer,
    /// Derives the values of the TXT records of custom domains.
    pub(crate) verify_tokens: VerifyTokenKey,
    /// Checks the DNS records of custom domains.
    pub(crate) verifier: Verifier,
    /// For checks that tenants request.
    pub(crate) domain_checks: Shares<Uuid>,
    /// Local parts that can't be registered on system domains.
    pub(crate) reserved: ReservedLocalParts,
    /// Notifies subscribers of new mail.
    pub(crate) arrivals: Arrivals,
    /// `drain`: complete what is in flight, at once; `stop`: cut it.
    pub(crate) shutdown: Shutdown,
    pub(crate) auth: Authenticator,
    pub(crate) passwords: Passwords,
    /// Signs in to the dashboard once.
    pub(crate) sign_in_link: UnusedSignInLink,
    pub(crate) limits: Arc<RequestLimits>,
    pub(crate) messages: MessageRenderer,
    /// What this process does a few of at once.
    pub(crate) gates: Gates,
    /// Streams of server-sent events, by tenant.
    pub(crate) streams: Shares<Uuid>,
    /// For WebSockets that are not authenticated yet.
    pub(crate) unauthenticated_sockets: Shares<ClientNetwork>,
}

impl AppState {
    /// Builds the state once Postgres is available, and starts its background tasks, which end when the state is dropped
    /// or `shutdown` stops. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`TokenKeyError`].
    pub(crate) async fn start(
        config: Arc<Config>,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        keys: &Keys,
        readiness: Readiness,
        shutdown: Shutdown,
    ) -> Result<Self, TokenKeyError> {
        let store = store.within(STATEMENT_TIMEOUT);
        let (verify_tokens, generations) = read_once_available(&store, &keys.secrets).await?;
        let gates = Gates::new();
        let limits = Arc::new(RequestLimits::new(Arc::clone(&bus), &config.limits));
        Ok(Self(Arc::new(App {
            cursors: CursorSealer::new(&keys.secrets),
            documents: DocumentSealer::new(&keys.secrets),
            used_documents: UsedDocuments::new(Arc::clone(&bus)),
            webhook_secrets: WebhookSecretSealer::new(&keys.secrets),
            verify_tokens,
            verifier: Verifier::new(&config, store.clone(), Arc::clone(&clock)),
            domain_checks: Shares::new(DOMAIN_CHECKS),
            reserved: config.reserved_local_parts(),
            arrivals: Arrivals::start(
                // A connection of its own: new mail is seen however busy the pool is.
                &store.with_own_pool(1),
                generations,
                bus.subscribe(),
                Arc::clone(&clock),
                readiness,
                &shutdown,
            ),
            auth: Authenticator::start(store.clone(), Arc::clone(&clock), Arc::clone(&limits), &keys.jwt),
            passwords: Passwords::new(gates.passwords.clone()),
            sign_in_link: UnusedSignInLink::default(),
            limits,
            messages: MessageRenderer::new(store.clone(), Arc::clone(&clock), gates.clone()),
            gates,
            streams: Shares::new(config.http.streams),
            unauthenticated_sockets: Shares::new(config.http.connections),
            config,
            stream_store: store.within(STALE_AFTER),
            store,
            bus,
            clock,
            shutdown,
        })))
    }
}

impl App {
    /// Begins what a request deletes.
    pub(crate) fn begin_deletion(&self) -> Deletion<'_> {
        Deletion::new(&self.store, &self.gates.deletions)
    }
}

/// What is read once, as soon as Postgres is available: on a machine that is busy it gives the first connection late.
async fn read_once_available(
    store: &Store,
    secrets: &[MasterKey],
) -> Result<(VerifyTokenKey, Vec<Generation>), TokenKeyError> {
    let read = async || {
        let verify_tokens = verify_token_key(store, secrets).await?;
        store.ensure_generation().await?;
        Ok((verify_tokens, store.list_generations().await?))
    };
    loop {
        match read().await {
            Err(TokenKeyError::Store(error)) if error.is_unavailable() => {
                tracing::warn!(%error, "waiting for Postgres");
                tokio::time::sleep(RETRY).await;
            }
            ended => return ended,
        }
    }
}

impl Deref for AppState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}

impl AsRef<Http> for AppState {
    fn as_ref(&self) -> &Http {
        &self.config.http
    }
}

impl AsRef<RequestLimits> for AppState {
    fn as_ref(&self) -> &RequestLimits {
        &self.limits
    }
}

impl AsRef<Authenticator> for AppState {
    fn as_ref(&self) -> &Authenticator {
        &self.auth
    }
}
