//! What every handler works with.

use std::ops::Deref;
use std::sync::Arc;

use tempmail_bus::SharedBus;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::clock::Clock;
use tempmail_model::cursor::CursorSealer;
use tempmail_model::verify_token::VerifyTokenKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_verification::Verifier;

use crate::arrivals::Arrivals;
use crate::auth::touch::Touches;
use crate::auth::{MailboxTokens, ProSessions};
use crate::client::ClientRule;
use crate::limit::RequestLimits;
use crate::message_view::MemoryBudget;
use crate::password::PasswordPool;
use crate::place::Places;
use crate::sse::Streams;

/// The state of one API server. Cheap to clone; clones are one.
#[derive(Clone)]
pub struct AppState(Arc<App>);

/// See [`AppState`].
pub struct App {
    /// All settings.
    pub config: Arc<Config>,
    /// The only truth.
    pub store: Store,
    /// Arrivals and wait slots.
    pub bus: SharedBus,
    /// Business time.
    pub clock: Arc<dyn Clock>,
    /// Seals and opens `next_since`.
    pub cursors: CursorSealer,
    /// Seals the secrets of webhooks.
    pub webhook_secrets: WebhookSecretSealer,
    /// Makes what the TXT records of custom domains carry.
    pub verify_tokens: VerifyTokenKey,
    /// Looks at the records of custom domains.
    pub verifier: Verifier,
    /// Local parts that nobody may have on system domains.
    pub reserved: ReservedLocalParts,
    /// Recent arrivals, to wake waiters from.
    pub arrivals: Arrivals,
    /// `drain`: answer what is in hand, at once; `stop`: too late for that.
    pub shutdown: Shutdown,
    pub(crate) mailbox_tokens: MailboxTokens,
    pub(crate) pro_sessions: ProSessions,
    pub(crate) passwords: PasswordPool,
    pub(crate) limits: RequestLimits,
    pub(crate) clients: ClientRule,
    pub(crate) parsing: MemoryBudget,
    pub(crate) touches: Touches,
    pub(crate) streams: Streams,
    /// WebSockets that are not authenticated yet.
    pub(crate) unauthenticated: Places,
}

impl AppState {
    /// The state over the given outside. Starts its background tasks, which end with it or
    /// with `shutdown`; so it needs a tokio runtime.
    pub fn start(
        config: Arc<Config>,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        keys: &Keys,
        readiness: Readiness,
        shutdown: Shutdown,
    ) -> Self {
        Self(Arc::new(App {
            cursors: CursorSealer::new(&keys.secrets),
            webhook_secrets: WebhookSecretSealer::new(&keys.secrets),
            verify_tokens: VerifyTokenKey::new(&keys.secrets[0]),
            verifier: Verifier::new(&config, store.clone(), Arc::clone(&clock)),
            reserved: ReservedLocalParts::new(&config.addresses.reserved),
            arrivals: Arrivals::start(
                // Followed over a connection of its own: new mail is seen however many ask.
                store.with_own_pool(1),
                bus.subscribe(),
                Arc::clone(&clock),
                readiness,
                &shutdown,
            ),
            mailbox_tokens: MailboxTokens::new(&keys.jwt),
            pro_sessions: ProSessions::new(&keys.jwt),
            passwords: PasswordPool::new(),
            limits: RequestLimits::new(Arc::clone(&bus), &config.limits),
            clients: ClientRule::new(&config.http),
            parsing: MemoryBudget::new(),
            touches: Touches::start(store.clone()),
            streams: Streams::new(config.http.streams),
            unauthenticated: Places::new(config.http.unauthenticated_sockets_per_client),
            config,
            store,
            bus,
            clock,
            shutdown,
        }))
    }
}

impl Deref for AppState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}
