//! Reasons of conditions and events.

/// Declares the reasons: the word, whether its event is a warning, and its message.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident, $warning:literal, $message:literal;)*) => {
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

            /// What the reason means, then what to do. Some conditions have a more specific message.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

reasons! {
    /// The resource is as declared.
    Ready, false, "Resource is ready.";
    /// Nothing conflicts with the object.
    Accepted, false, "Resource is accepted.";
    /// The Tenant is missing, or does not allow the namespace.
    TenantRefNotPermitted, true, "No Tenant with this name allows this namespace. Ask the platform team to select the namespace in the Tenant's spec.allowedNamespaces.";
    /// The Tenant has no row yet.
    TenantNotReady, false, "The Tenant is not ready. This resource is reconciled again when the Tenant is.";
    /// The Tenant is suspended.
    TenantSuspended, true, "The Tenant is suspended, so no resources are created for it. Ask the platform team to set the Tenant's spec.suspended to false.";
    /// The row belongs to a former Tenant with the same name.
    TenantReplaced, true, "The Tenant was deleted and created again, and a new Tenant inherits nothing. Delete this object and create it again.";
    /// A tenant with the name exists.
    TenantNameTaken, true, "A tenant with this name exists already. Adopt it by setting the annotation tempmail.dev/adopt-tenant to its id, or choose another name.";
    /// The tenant to adopt does not exist, or has an object.
    TenantNotAdoptable, true, "The tenant in the annotation tempmail.dev/adopt-tenant does not exist, or another Tenant manages it. Correct or remove the annotation.";
    /// The tenant's limit is reached or exceeded.
    QuotaExceeded, true, "The tenant's limit for these resources is reached or exceeded. Delete one of them, or ask the platform team to raise the limit.";
    /// Another object manages the domain.
    DomainClaimed, true, "Another object manages this domain. Use another domain, or delete the other object.";
    /// An object of another cluster manages the row.
    HeldByAnotherCluster, true, "An object of another cluster over the same database has this resource. If that cluster is gone, release it with tempmail cluster release; if it is not, delete one of the two objects.";
    /// The tenant created the resource over HTTP.
    ExistsUnmanaged, true, "The tenant created this resource over HTTP, and spec.adoptionPolicy is Never. Delete the resource over HTTP, or set spec.adoptionPolicy to IfUnowned.";
    /// The domain is one of the installation, or a public suffix.
    ReservedDomain, true, "The domain is a public suffix, or is equal to, above or below a domain of the installation. Use another domain.";
    /// Another SystemDomain is the default one.
    DefaultTaken, true, "An older SystemDomain is the default domain already. Set spec.default to false on one of them.";
    /// Mailboxes use the domain to delete.
    InUse, true, "Mailboxes use the domain. It is deleted when no mailbox uses it.";
    /// The domain to delete is the default one.
    IsDefault, true, "The domain is the default domain. It is deleted when another SystemDomain is the default domain.";
    /// The domain to delete is the only one.
    IsOnly, true, "The domain is the only system domain. It is deleted when another system domain exists.";
    /// The address is unavailable.
    AddressTaken, true, "The address is in use, or held after a deletion. Choose another address.";
    /// The domain does not serve the tenant.
    DomainNotServed, false, "The domain of the address is neither a system domain nor a verified custom domain of the tenant. Verify the domain with a CustomDomain; this resource becomes ready then.";
    /// Another Secret has the name.
    SecretConflict, true, "A Secret with this name exists that this object did not create. Delete the Secret, or create this object again with another spec.secret.name.";
    /// The Secret is immutable.
    SecretImmutable, true, "The Secret is immutable and can't be updated. Delete it; it is created again within a minute.";
    /// The API server rejects the Secret.
    SecretRefused, true, "The API server rejects the Secret. Change the quota, policy or webhook that rejects it. The write is retried every minute.";
    /// The spec passes the API server's validation, and is invalid all the same.
    InvalidSpec, true, "The spec is invalid. Correct it.";
    /// The DNS records are correct.
    RecordsFound, false, "The DNS records are correct.";
    /// The DNS records were not checked yet.
    WaitingForDns, false, "Create the DNS records in status.verification.records. They are checked every 5 minutes.";
    /// The TXT record is missing.
    TxtRecordMissing, false, "The TXT record does not exist. Create it; see status.verification.records.";
    /// The TXT record has another value.
    TxtRecordMismatch, false, "The TXT record does not have the expected value. Correct it; see status.verification.records.";
    /// The MX record is missing.
    MxRecordMissing, false, "The MX record does not exist. Create it; see status.verification.records.";
    /// The MX record has another value.
    MxRecordMismatch, false, "The MX record does not have the expected value. Correct it; see status.verification.records.";
    /// No name server answered.
    DnsLookupFailed, true, "None of the domain's name servers answers. Check the delegation of the domain. The lookup is retried.";
    /// The DNS records were not correct before the deadline.
    VerificationTimedOut, true, "The DNS records were not correct before the deadline. Correct them, then set the annotation tempmail.dev/verify-requested-at to a new value.";
    /// The DNS records of a verified domain were incorrect for days.
    RecordsLost, true, "The DNS records were incorrect for days, so mail is refused. Correct them, then set the annotation tempmail.dev/verify-requested-at to a new value.";
    /// Another tenant verified the domain.
    ClaimedByAnother, true, "Another tenant verified that it owns the domain. Use another domain.";
    /// The Secret no longer holds the token, and onSecretLoss is Stall.
    SecretLost, true, "The Secret is missing or no longer holds the token, and spec.onSecretLoss is Stall. The token stays valid. Set the annotation tempmail.dev/rotate-requested-at to a new value to get a new token.";
    /// The token has expired.
    Expired, true, "The token has expired. Change spec.expiresAt, or delete the object.";
    /// Events are sent.
    Delivering, false, "Events are sent.";
    /// Ten attempts in a row failed.
    AutoDisabled, true, "Ten delivery attempts in a row failed, so no events are sent. Fix the receiver, then set the annotation tempmail.dev/reenable-requested-at to a new value. The webhook gets a new id and secret.";
    /// Event: the Secret was written.
    SecretWritten, false, "The Secret was written.";
    /// Event: the Secret has a new value.
    SecretRotated, false, "The Secret has a new value. The previous value is refused.";
    /// Event: a disabled webhook was replaced.
    WebhookReenabled, false, "The webhook was replaced by one with a new id and secret.";
    /// Postgres was unavailable before the object was reconciled for the first time.
    PostgresUnavailable, true, "The database is unavailable, so this object was not reconciled yet. It is retried until the database is available.";
    /// The annotation pauses the reconciliation.
    Paused, false, "The annotation tempmail.dev/paused pauses the reconciliation. Remove it to resume.";
}
