//! Reasons of conditions and events.

/// Declares the reasons: the word, and whether its event is a warning.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident, $warning:literal;)*) => {
        /// The reason of a condition or an event. The words are stable across versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])* $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// `reason` of the condition, and of the event.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Whether the event is a warning.
            pub const fn is_warning(self) -> bool {
                match self { $(Self::$name => $warning,)* }
            }
        }
    };
}

reasons! {
    /// The resource is as declared.
    Ready, false;
    /// Nothing conflicts with the object.
    Accepted, false;
    /// The Tenant is missing, or does not allow the namespace.
    TenantRefNotPermitted, true;
    /// The Tenant has no row yet.
    TenantNotReady, false;
    /// The Tenant is suspended.
    TenantSuspended, true;
    /// The row belongs to a former Tenant with the same name.
    TenantReplaced, true;
    /// Event: the Tenant is deleted, and the tenant is kept.
    TenantRetained, false;
    /// A tenant with the name exists.
    TenantNameTaken, true;
    /// The tenant to adopt does not exist, or has an object.
    TenantNotAdoptable, true;
    /// The tenant's limit is reached or exceeded.
    QuotaExceeded, true;
    /// Another object manages the domain.
    DomainClaimed, true;
    /// An object of another cluster manages the row.
    HeldByAnotherCluster, true;
    /// The tenant created the resource over HTTP.
    ExistsUnmanaged, true;
    /// The domain is one of the installation, or a public suffix.
    ReservedDomain, true;
    /// Another SystemDomain is the default one.
    DefaultTaken, true;
    /// Mailboxes use the domain to delete.
    InUse, true;
    /// The domain to delete is the default one.
    IsDefault, true;
    /// The domain to delete is the only one.
    IsOnly, true;
    /// The address is unavailable.
    AddressTaken, true;
    /// The domain does not serve the tenant.
    DomainNotServed, false;
    /// Another Secret has the name.
    SecretConflict, true;
    /// The Secret is immutable.
    SecretImmutable, true;
    /// The API server rejects the Secret.
    SecretRefused, true;
    /// The API server does not let the operator read the Secret.
    SecretUnreadable, true;
    /// The spec passes the API server's validation, and is invalid all the same.
    InvalidSpec, true;
    /// The DNS records are correct.
    RecordsFound, false;
    /// The DNS records were not checked yet.
    WaitingForDns, false;
    /// The TXT record is missing.
    TxtRecordMissing, false;
    /// The TXT record has another value.
    TxtRecordMismatch, false;
    /// The MX record is missing.
    MxRecordMissing, false;
    /// The MX record has another value.
    MxRecordMismatch, false;
    /// No name server answered.
    DnsLookupFailed, true;
    /// The DNS records were not correct before the deadline.
    VerificationTimedOut, true;
    /// The DNS records of a verified domain were incorrect for days.
    RecordsLost, true;
    /// Another tenant verified the domain.
    ClaimedByAnother, true;
    /// The Secret no longer holds the token, and onSecretLoss is Stall.
    SecretLost, true;
    /// The token has expired.
    Expired, true;
    /// Events are sent.
    Delivering, false;
    /// Ten attempts in a row failed.
    AutoDisabled, true;
    /// Event: the object took over what existed without one, or what an object of a released cluster had.
    Adopted, false;
    /// Event: the Secret was written.
    SecretWritten, false;
    /// Event: the Secret has a new value.
    SecretRotated, false;
    /// Event: a disabled webhook was replaced.
    WebhookReenabled, false;
    /// Postgres was unavailable before the object was reconciled for the first time.
    PostgresUnavailable, true;
    /// The annotation pauses the reconciliation.
    Paused, false;
}
