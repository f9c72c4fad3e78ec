//! Annotations that request an operation. The value is any text; a changed value requests the operation
//! again. The value that was handled last is in the status.

/// On a CustomDomain: check the DNS records now; a failed verification starts over.
pub const VERIFY: &str = "tempmail.dev/verify-requested-at";
/// On a Webhook, ApiToken or Mailbox: issue a new secret.
pub const ROTATE: &str = "tempmail.dev/rotate-requested-at";
/// On a disabled Webhook: replace the webhook by one with a new ID and secret.
pub const REENABLE: &str = "tempmail.dev/reenable-requested-at";
/// On any kind, with the value `true`: pause reconciliation of the object.
pub const PAUSED: &str = "tempmail.dev/paused";
/// On a Tenant: adopt the tenant with this ID, which no other object manages.
pub const ADOPT_TENANT: &str = "tempmail.dev/adopt-tenant";
