//! The store: everything that is kept, in Postgres.
//!
//! A folder a subject (`mail`, `domains`, `tenants`, `webhooks`, `kubernetes`), and `schema` for migrations. Functions
//! take the time as an argument; each is one statement, so that a hot path needs one round trip. What callers have to
//! distinguish is in the result types; every other failure is a [`StoreError`], and functions that have no other say
//! nothing of errors.

#![expect(clippy::missing_errors_doc, reason = "said once, for all functions, above")]

mod actor;
mod audit;
mod connections;
mod domains;
mod error;
mod kubernetes;
mod mail;
mod pool;
mod pooled_connection;
mod restored;
mod row;
mod schema;
mod tenants;
mod webhooks;

pub use actor::Actor;
pub use audit::AuditEntry;
pub use domains::check::{CheckRequest, DomainToCheck, DomainsToCheck, Incumbent, VerifyOutcome};
pub use domains::custom::{CustomDomain, DomainCreation, NewCustomDomain};
pub use domains::system::{
    ServingDomain, SystemDomain, SystemDomainAddition, SystemDomainRemoval, SystemDomainUsage,
};
pub use error::StoreError;
pub use kubernetes::cluster::{
    CLUSTER_SILENT_AFTER, ClusterAdmission, ClusterRelease, Epoch, KubernetesCluster, RowHolder,
};
pub use kubernetes::custom_domain::CustomDomainDeclaration;
pub use kubernetes::grant::UsedGrant;
pub use kubernetes::mailbox::{MailboxDeclaration, ManagedMailbox};
pub use kubernetes::resource::{DeclareError, DeclareOutcome, DeclareResult, Resource, ResourceIdentity};
pub use kubernetes::system_domain::{ManagedSystemDomain, SystemDomainDeclaration};
pub use kubernetes::tenant::TenantDeclaration;
pub use kubernetes::token::{ManagedToken, TokenDeclaration};
pub use kubernetes::webhook::{ManagedWebhook, WebhookDeclaration};
pub use mail::accept::{
    AcceptOutcome, DeliveryLimits, DeliveryPreflight, MailSummary, MailWriter, NewMail, NewMessage,
};
pub use mail::changes::{CHANGE_RETENTION, ChangeSnapshot, StreamHead};
pub use mail::inbox::{InboxAccess, InboxQuery, InboxScan, ScanRange, ScanRequest};
pub use mail::message::{MessageRow, Summary};
pub use mail::partition::PartitionRange;
pub use mail::purge::PURGE_BATCH;
pub use mail::raw::{RAW_PART_BYTES, RawData, RawHead, StoredMessage};
pub use mail::recipient::{RecipientMailbox, RecipientQuery, RecipientReader, RecipientStatus};
pub use mail::scan::{MailboxScan, TenantScan};
pub use mail::stream::{Generation, StreamMessages};
pub use mail::tenant_message::{MessageCount, TenantInbox};
pub use mail::usage::{StoreUsage, USAGE_BATCH};
pub use pool::Store;
pub use restored::AcceptedToken;
pub use row::{ChangeError, CreateOutcome, ManagedBy};
pub use schema::definition::{MigrationFile, SCHEMA, SchemaDefinition, SqlFile};
pub use schema::group_role::GroupRole;
pub use schema::migration::{Deviation, MigrationReport, SchemaError, SchemaFinding};
pub use tenants::mailbox::{
    AddressHolder, CLEANUP_BATCH, LimitCheck, Mailbox, MailboxCreation, MailboxRecreation, NewMailbox,
};
pub use tenants::minted_token::{LiveToken, MintOutcome, MintedToken, NewMintedToken, SessionToken};
pub use tenants::pro_mailbox::{ListedMailbox, TenantMailbox};
pub use tenants::token::{ApiToken, ENDED_TOKEN_RETENTION, ListedToken, NewToken};
pub use tenants::{LimitUsage, Tenant, TenantChange, TenantLimits};
pub use webhooks::delivery::{DELIVERY_RETENTION, DeliveryAttempt, RecordOutcome, WebhookDelivery};
pub use webhooks::event::{EventCursor, EventLimits, PendingEvent, PendingEvents, Probe, WebhookBacklog};
pub use webhooks::lease::{ClaimLimits, ClaimScope, ClaimedWebhook, WEBHOOK_LEASE};
pub use webhooks::{NewWebhook, ResealedWebhookSecret, SealedWebhookSecret, Webhook};
