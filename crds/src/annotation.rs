//! Annotations that ask for an act. The value is any text; a new one asks again. What was
//! carried out is echoed in the status.

/// On a CustomDomain: look at the records now; a failed one is pending anew.
pub const VERIFY: &str = "tempmail.dev/verify-requested-at";
/// On a Webhook, ApiToken or Mailbox: make a new secret.
pub const ROTATE: &str = "tempmail.dev/rotate-requested-at";
/// On a disabled Webhook: delete it and make it again, with another id and secret.
pub const REENABLE: &str = "tempmail.dev/reenable-requested-at";
/// On any kind, with the value `true`: leave the object alone.
pub const PAUSED: &str = "tempmail.dev/paused";
/// On a Tenant: take over the tenant of this id, which no other resource manages.
pub const ADOPT_TENANT: &str = "tempmail.dev/adopt-tenant";
