//! The role: creates its tasks and runs them until the drain is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::listener::Listener;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::role::RoleFuture;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;

use crate::capacity::CapacityGate;
use crate::connection::{SmtpServer, Timeouts};
use crate::delivery::Delivery;
use crate::listener::{self, ConnectionLimits};
use crate::mail_rates::MailRates;
use crate::memory::{MemoryBudget, MemoryLimits};
use crate::metrics::Metrics;
use crate::recipient::{RecipientChecker, RejectionDelay, SharedInboxIndex};
use crate::smtp::{DataLimits, SessionSettings};
use crate::tls::Tls;

/// How long a statement may take. A sender is answered within 10 s however silent Postgres is: a connection that was
/// idle takes 1 s more to be given up.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(6);

/// Recipients of a transaction that a sink takes at least, as many as the setting allows.
const CAUGHT_RECIPIENTS_MAX: usize = 1_000;

/// The role: an SMTP server that receives and stores.
pub struct Ingest {
    listener: Listener,
    address: SocketAddr,
    tls: Option<Tls>,
    config: Arc<Config>,
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
}

impl Ingest {
    /// Binds the socket and reads the certificate. Connections are accepted by [`run`](Self::run).
    ///
    /// # Errors
    /// `smtp.listen` can't be bound, or `smtp.tls` can't be read.
    pub async fn bind(
        config: Arc<Config>,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
    ) -> anyhow::Result<Self> {
        let tls = Tls::from_config(&config.smtp.tls)?;
        let listener = listener::bind(config.smtp.listen)?;
        let address = listener.local_addr()?;
        readiness.set_not_ready("postgres", "not queried yet");
        readiness.set_not_ready("smtp", "not accepting yet");
        Ok(Self { listener, address, tls, config, store, bus, clock, readiness })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the drain is over. Errors of clients and of Postgres do not end it.
    ///
    /// # Errors
    /// A task of the role panicked.
    pub fn run(self, shutdown: Shutdown) -> RoleFuture {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { listener, address, tls, config, store, bus, clock, readiness } = self;
        let store = store.within(STATEMENT_TIMEOUT);
        let reserved = config.reserved_local_parts();
        let capacity = CapacityGate::default();
        let capacity_task = tokio::spawn(capacity.clone().run(
            store.clone(),
            Arc::clone(&clock),
            config.limits.clone(),
            readiness.clone(),
        ));
        let (delivery, batcher_task) = Delivery::start(
            &config,
            store.clone(),
            bus,
            Arc::clone(&clock),
            capacity.clone(),
            readiness.clone(),
        );
        let shared_inboxes = SharedInboxIndex::default();
        let index_task = tokio::spawn(shared_inboxes.clone().run(store.clone(), Arc::clone(&clock)));
        let (recipients, lookup_task) =
            RecipientChecker::start(store, clock, reserved, shared_inboxes, capacity, readiness.liveness());
        let limits = ConnectionLimits::new(
            config.smtp.connections,
            config.smtp.connections_per_peer,
            Duration::from_secs(config.smtp.idle_seconds),
            config.smtp.unlimited_networks.clone(),
        );
        let server = Arc::new(SmtpServer {
            settings: Arc::new(session_settings(&config, tls.is_some())),
            recipients,
            rejection_delay: RejectionDelay::new(config.smtp.unknown_recipients_per_minute),
            rates: MailRates::from_config(&config.smtp),
            delivery,
            tls: tls.as_ref().map(Tls::acceptor),
            timeouts: Timeouts::from_config(&config.smtp),
            metrics: Metrics::new(),
            drain: shutdown.drain.clone(),
        });
        let renewal_task = tls.map(|tls| tokio::spawn(tls.follow_renewals()));
        readiness.set_ready("smtp");
        tracing::info!(%address, "accepting mail");
        let proxies = config.smtp.proxy_networks.clone();
        listener::accept(listener, server, limits, proxies, shutdown).await;
        readiness.set_not_ready("smtp", "draining");
        if let Some(task) = renewal_task {
            task.abort();
        }
        capacity_task.abort();
        index_task.abort();
        // These end with the handles of the last session.
        lookup_task.await?;
        batcher_task.await?;
        Ok(())
    }
}

/// A sink refuses nothing that is in the data of a test: its header section is bounded as the message is.
fn session_settings(config: &Config, tls_offered: bool) -> SessionSettings {
    let smtp = &config.smtp;
    let catches_all = config.sink.is_some();
    let most = |bound: usize, caught: usize| if catches_all { bound.max(caught) } else { bound };
    SessionSettings {
        hostname: smtp.hostname.clone(),
        tls_offered,
        catches_all,
        data: DataLimits {
            message_octets: smtp.max_message_bytes as u64,
            header_octets: most(smtp.max_header_bytes, smtp.max_message_bytes) as u64,
            header_fields: u32::try_from(most(smtp.max_header_fields, usize::MAX)).unwrap_or(u32::MAX),
            takes_any_line: catches_all,
        },
        max_recipients: most(smtp.max_recipients, CAUGHT_RECIPIENTS_MAX),
        max_errors: smtp.max_errors,
        memory: MemoryBudget::new(MemoryLimits {
            process: smtp.memory_bytes,
            peer: smtp.memory_bytes_per_peer,
            tenant: smtp.memory_bytes_per_tenant,
        }),
    }
}
