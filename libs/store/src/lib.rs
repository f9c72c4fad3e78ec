//! Postgres, the only truth: one file a table group, embedded migrations, partitions.
//!
//! Functions are concrete and take the time as an argument; a statement on a hot path is one
//! round trip. What a caller may be told apart is in the result types; everything else is a
//! [`StoreError`].

mod change;
mod custom_domain;
mod delivery;
mod domain;
mod error;
mod idle;
mod inbox;
mod mailbox;
mod message;
mod migration;
mod owned;
mod page;
mod partition;
mod pro_mailbox;
mod recipient;
mod resource;
mod retention;
mod room;
mod row;
mod shared_address;
mod stream;
mod system_domain;
mod tenant;
mod token;
mod webhook;
mod webhook_event;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool};
use std::time::Duration;

pub use change::{ChangeError, CreateOutcome, ManagedBy};
pub use custom_domain::{
    CheckRequest, CustomDomain, DomainCreation, DomainToCheck, Incumbent, NewCustomDomain, VerifyOutcome,
};
pub use delivery::{
    AcceptOutcome, DeliveryLimits, DeliveryPreflight, MailWriter, NewMail, NewMessage, RawData,
};
pub use domain::{ServingDomain, SystemDomain};
pub use error::StoreError;
pub use idle::CLEANUP_BATCH;
pub use inbox::{InboxAccess, InboxQuery, InboxScan, ScanRange};
pub use mailbox::{Mailbox, MailboxCreation, NewMailbox};
pub use message::{MessageRow, RAW_PART_BYTES, RawHead, StoredMessage};
pub use migration::{Deviation, MigrationReport, SchemaError, SchemaFinding};
pub use owned::{MailboxScan, TenantScan};
pub use pro_mailbox::{ListedMailbox, TenantMailbox};
pub use recipient::{RecipientMailbox, RecipientQuery, RecipientReader, RecipientStatus};
pub use resource::{
    CustomDomainDeclaration, DeclareError, DeclareOutcome, DeclareResult, Epoch, MailboxDeclaration,
    ManagedMailbox, ManagedSystemDomain, ManagedToken, ManagedWebhook, Resource, ResourceIdentity,
    ResourceKind, SystemDomainDeclaration, TenantDeclaration, TokenDeclaration, WebhookDeclaration,
};
pub use retention::{PURGE_BATCH, PartitionRange, USAGE_BATCH};
pub use room::StoreUsage;
pub use stream::{CHANGE_RETENTION, Snapshot, StreamHead};
pub use system_domain::{SystemDomainAddition, SystemDomainRemoval, SystemDomainUsage};
pub use tenant::{LimitUsage, Tenant, TenantChange, TenantDefaults};
pub use token::{ApiToken, ENDED_TOKEN_RETENTION, ListedToken, NewToken};
pub use webhook::{DELIVERY_RETENTION, NewWebhook, Webhook, WebhookDelivery};
pub use webhook_event::{
    ClaimedWebhook, DeliveryAttempt, PendingEvent, PendingEvents, RecordOutcome, WEBHOOK_LEASE,
    WebhookBacklog,
};

/// A connection that idled for longer is tried before it is used again.
const PING_AFTER_IDLE: Duration = Duration::from_secs(2);

/// What every connection asks of Postgres. Statements are planned once a connection, for any
/// value and any number of rows: planning over all partitions costs more than running does, and
/// a table that was small when it was looked at may be large a moment later.
const SETTINGS: [(&str, &str); 7] = [
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// A pool of connections to the one database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
}

impl Store {
    /// Connects lazily: the first use finds out whether Postgres is there.
    ///
    /// `application_name` is what Postgres shows of this process.
    ///
    /// # Errors
    /// `url` is no Postgres URL.
    pub fn connect(url: &str, max_connections: u32, application_name: &str) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.application_name(application_name).options(SETTINGS);
        Ok(Self { pool: pool(options, max_connections) })
    }

    /// The same database over up to `max_connections` of its own: for what must not wait behind
    /// requests.
    #[must_use]
    pub fn with_own_pool(&self, max_connections: u32) -> Self {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        Self { pool: pool(options, max_connections) }
    }

    /// The connections, for statements of this crate and of tests.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

fn pool(options: PgConnectOptions, max_connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(Duration::from_secs(5))
        // A connection that was in use just now needs no ping: reads are one round trip.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}
