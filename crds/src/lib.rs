//! The custom resources of `tempmail.dev/v1alpha1`: types, schemas and validation rules. No client, no I/O.
#![expect(clippy::duplicated_attributes, reason = "each printer column names its type")]

pub mod annotation;
mod api_reference;
mod api_token;
mod custom_domain;
mod mailbox;
mod manifest;
mod shared_field;
mod system_domain;
mod tenant;
mod webhook;

pub use api_reference::api_reference;
pub use api_token::{ApiToken, ApiTokenSpec, ApiTokenStatus, OnSecretLoss, TokenType};
pub use custom_domain::{
    CustomDomain, CustomDomainSpec, CustomDomainStatus, DnsRecord, DnsRecordType, RecordResult, Verification,
    VerificationState,
};
pub use mailbox::{Mailbox, MailboxSpec, MailboxStatus};
pub use manifest::{all, manifests};
pub use shared_field::{AdoptionPolicy, Condition, DeletionPolicy, KindStatus, SecretTarget, TenantRef};
pub use system_domain::{SystemDomain, SystemDomainSpec, SystemDomainStatus};
pub use tenant::{Tenant, TenantLimits, TenantSpec, TenantStatus, TenantUsage};
pub use webhook::{Webhook, WebhookSpec, WebhookState, WebhookStatus};

/// The API group of all kinds.
pub const GROUP: &str = "tempmail.dev";
/// The one served version.
pub const VERSION: &str = "v1alpha1";
