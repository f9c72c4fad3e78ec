//! Inbound SMTP: sessions, recipients, and the batcher that commits before 250.

pub mod connection;
pub mod delivery;
pub mod limits;
pub mod listener;
pub mod memory;
pub mod metrics;
pub mod recipient;
pub mod room;
pub mod smtp;
pub mod summary;
pub mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use tempmail_bus::SharedBus;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::connection::{Server, Times};
use crate::delivery::Delivery;
use crate::limits::ConnectionLimits;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::recipient::{Recipients, SharedView};
use crate::room::StorageRoom;
use crate::smtp::Settings;
use crate::smtp::data::DataLimits;

/// The role: an SMTP server that receives and stores.
pub struct Ingest {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    config: Arc<Config>,
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
}

impl Ingest {
    /// Binds the socket and reads the certificate; nothing is accepted before [`run`](Self::run).
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
        let tls = tls::acceptor(&config.smtp.tls)?;
        let listener = listener::bind(config.smtp.listen)?;
        let address = listener.local_addr()?;
        readiness.set_not_ready("postgres", "not asked yet");
        readiness.set_not_ready("smtp", "not accepting yet");
        Ok(Self { listener, address, tls, config, store, bus, clock, readiness })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the drain is over.
    ///
    /// # Errors
    /// None so far; clients' troubles are theirs, and Postgres may come back.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { listener, address, tls, config, store, bus, clock, readiness } = self;
        let reserved = ReservedLocalParts::new(&config.addresses.reserved);
        let room = StorageRoom::default();
        let watch = tokio::spawn(room.clone().watch(
            store.clone(),
            Arc::clone(&clock),
            config.limits.clone(),
            readiness.clone(),
        ));
        let (delivery, batcher) = Delivery::start(&config, store.clone(), bus, Arc::clone(&clock));
        let view = SharedView::default();
        let look = tokio::spawn(view.clone().watch(store.clone(), Arc::clone(&clock)));
        let (recipients, lookup) = Recipients::start(store, clock, reserved, view, room);
        let limits = ConnectionLimits::new(
            config.smtp.connections,
            config.smtp.connections_per_peer,
            config.smtp.unlimited_networks.clone(),
        );
        let server = Arc::new(Server {
            settings: Arc::new(settings(&config, tls.is_some())),
            recipients,
            delivery,
            tls,
            times: Times::of(&config.smtp),
            metrics: Metrics::new(),
            drain: shutdown.drain.clone(),
        });
        readiness.set_ready("smtp");
        tracing::info!(%address, "accepting mail");
        listener::accept(listener, server, limits, shutdown).await;
        readiness.set_not_ready("smtp", "draining");
        watch.abort();
        look.abort();
        // Both end with the last session's handle.
        lookup.await?;
        batcher.await?;
        Ok(())
    }
}

fn settings(config: &Config, tls_offered: bool) -> Settings {
    let smtp = &config.smtp;
    Settings {
        hostname: smtp.hostname.clone(),
        tls_offered,
        data: DataLimits {
            message_octets: smtp.max_message_bytes as u64,
            header_octets: smtp.max_header_bytes as u64,
            header_fields: u32::try_from(smtp.max_header_fields).unwrap_or(u32::MAX),
        },
        max_recipients: smtp.max_recipients,
        max_errors: smtp.max_errors,
        memory: MemoryBudget::new(smtp.memory_bytes),
    }
}
