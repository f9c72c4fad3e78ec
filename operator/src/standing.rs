//! What is told of an object: conditions with their reasons, and how they sum up (kstatus).

use std::borrow::Cow;
use std::time::Duration;

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// All is as the object says.
    Ready,
    /// The object may be what it says: its tenant allows it, and nothing else has it.
    Accepted,
    /// The domain's records are right.
    Verified,
    /// The webhook is sent to.
    Delivering,
    /// Something is awaited.
    Reconciling,
    /// It stays like this until somebody acts.
    Stalled,
    /// The tenant has more than it may have now.
    QuotaExceeded,
    /// An annotation asks to leave the object alone.
    ReconciliationPaused,
}

impl ConditionType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Accepted,
        Self::Verified,
        Self::Delivering,
        Self::Reconciling,
        Self::Stalled,
        Self::QuotaExceeded,
        Self::ReconciliationPaused,
    ];

    /// `type` of the condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Accepted => "Accepted",
            Self::Verified => "Verified",
            Self::Delivering => "Delivering",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::ReconciliationPaused => "ReconciliationPaused",
        }
    }
}

/// Declares the reasons: the word, whether its event is a warning, and the message where it says all.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident, $warning:literal, $message:literal;)*) => {
        /// Why a condition is what it is. The words do not change between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])* $name,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// `reason` of the condition, and of the event.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Whether the event of it is a warning.
            pub const fn is_warning(self) -> bool {
                match self { $(Self::$name => $warning,)* }
            }

            /// What it means and what to do.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

reasons! {
    /// All is as the object says.
    Ready, false, "All is as the object says.";
    /// Nothing is in the way.
    Accepted, false, "The object may be what it says.";
    /// The Tenant is missing, or does not allow the namespace.
    TenantRefNotPermitted, true, "There is no Tenant of that name that allows this namespace: ask the platform team to list the namespace in the Tenant's allowedNamespaces.";
    /// The Tenant has no row yet.
    TenantNotReady, false, "The Tenant is not ready yet.";
    /// The Tenant is suspended.
    TenantSuspended, true, "The Tenant is suspended: nothing is made for it.";
    /// The row is another tenant's than the one of that name now.
    TenantReplaced, true, "The Tenant was deleted and made again, and inherits nothing: delete this object and make it again.";
    /// A tenant of that name is there.
    TenantNameTaken, true, "A tenant of that name is there already: adopt it by the annotation tempmail.dev/adopt-tenant with its id, or choose another name.";
    /// The tenant that is to be adopted is not there, or has an object.
    TenantNotAdoptable, true, "The tenant of the annotation tempmail.dev/adopt-tenant is not there, or another Tenant manages it.";
    /// The tenant has as many as it may.
    QuotaExceeded, true, "The Tenant has as many of these as its limits allow: delete one, or ask the platform team to raise the limit.";
    /// Another object has the domain.
    DomainClaimed, true, "Another object manages this domain already.";
    /// The tenant made it over HTTP.
    ExistsUnmanaged, true, "The tenant made it over HTTP already, and adoptionPolicy is Never: delete it there, or set adoptionPolicy to IfUnowned.";
    /// A name of the service itself, or a public suffix.
    ReservedDomain, true, "The domain is a public suffix, or equal to, above or below a domain of the service itself: use another one.";
    /// Another SystemDomain is the default one.
    DefaultTaken, true, "An older SystemDomain says that it is the default one: only one may.";
    /// Mailboxes use the domain that is to go.
    InUse, true, "Mailboxes use the domain: it is deleted once there are none.";
    /// The domain that is to go is the default one.
    IsDefault, true, "It is the default domain: it is deleted once another SystemDomain is the default one.";
    /// The domain that is to go is the only one.
    IsOnly, true, "It is the only system domain: it is deleted once there is another one.";
    /// The address is not to be had.
    AddressTaken, true, "The address is in use or held: choose another one.";
    /// No domain of the mailbox's tenant, and none of the installation.
    DomainNotServed, false, "The address's domain is neither a system domain nor a verified custom domain of the tenant: it is waited for.";
    /// There is a Secret in the way.
    SecretConflict, true, "A Secret of that name is there that this object did not make: delete it or name another one in spec.secret.name.";
    /// Nobody may change the Secret.
    SecretImmutable, true, "The Secret is immutable, so it can't be written: delete it, and it is made anew within a minute.";
    /// The API server does not take the Secret.
    SecretRefused, true, "The API server refuses the Secret: change what is asked of Secrets in this namespace. It is tried again every minute.";
    /// What the rules of the API server let pass, and is wrong all the same.
    InvalidSpec, true, "The spec can't be carried out.";
    /// The records are there.
    RecordsFound, false, "The records are right.";
    /// Nobody looked yet.
    WaitingForDns, false, "Set the records of status.verification.records; they are looked for every few minutes.";
    /// The TXT record is not there.
    TxtRecordMissing, false, "The TXT record is not there: set the one of status.verification.records.";
    /// Something else is in place of the TXT record.
    TxtRecordMismatch, false, "The TXT record is another one: compare with status.verification.records.";
    /// The MX record is not there.
    MxRecordMissing, false, "The MX record is not there: set the one of status.verification.records.";
    /// Something else is in place of the MX record.
    MxRecordMismatch, false, "The MX record is another one: compare with status.verification.records.";
    /// No name server answered.
    DnsLookupFailed, true, "None of the domain's name servers answered; they are asked again.";
    /// The records were not there in time.
    VerificationTimedOut, true, "The records were not right before the deadline: set them, then annotate the object with tempmail.dev/verify-requested-at and a new value.";
    /// The records were wrong for days.
    RecordsLost, true, "The records were wrong for days, so mail is refused: set them, then annotate the object with tempmail.dev/verify-requested-at and a new value.";
    /// Another tenant proved that the name is theirs.
    ClaimedByAnother, true, "Another tenant proved that the domain is theirs.";
    /// The Secret no longer holds the token, and no other is to be made.
    SecretLost, true, "The Secret is gone or no longer holds the token, which works on; onSecretLoss is Stall: annotate the object with tempmail.dev/rotate-requested-at and a new value for a new one.";
    /// The token is refused by now.
    Expired, true, "The token has expired: set another expiresAt, or delete the object.";
    /// Events are sent.
    Delivering, false, "Events are sent.";
    /// Ten attempts in a row failed.
    AutoDisabled, true, "Ten attempts in a row failed, so nothing is sent any more: mend the receiver, then annotate the object with tempmail.dev/reenable-requested-at and a new value; id and secret will be new.";
    /// An event: the Secret has what it should.
    SecretWritten, false, "The Secret was written.";
    /// An event: the Secret has a new value.
    SecretRotated, false, "The Secret has a new value; the former one is refused.";
    /// An event: a webhook that was disabled was made again.
    WebhookReenabled, false, "The webhook was made again, with another id and secret.";
    /// The annotation is there.
    Paused, false, "The annotation tempmail.dev/paused asks to leave the object alone.";
}

/// Whether it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition, without the times that the status adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub kind: ConditionType,
    pub truth: Truth,
    pub reason: Reason,
    pub message: Cow<'static, str>,
}

impl Verdict {
    /// With the message of the reason.
    pub(crate) fn new(kind: ConditionType, truth: Truth, reason: Reason) -> Self {
        Self { kind, truth, reason, message: reason.message().into() }
    }
}

/// How an object stands: what its status is to say, and when to look again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing<S> {
    /// The status, its conditions aside.
    pub status: S,
    pub verdicts: Vec<Verdict>,
    /// When to look again, if earlier than after the usual time.
    pub again: Option<Duration>,
}

/// What is expected of an object that is not Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It becomes Ready by itself, or by what its owner does elsewhere: it is in progress.
    Waits,
    /// Somebody must change something first: it has failed.
    Stuck,
}

/// An object that is not accepted is looked at again this often.
pub(crate) const REFUSED_AGAIN: Duration = Duration::from_secs(60);

impl<S> Standing<S> {
    /// All is as the object says.
    pub(crate) fn ready(status: S) -> Self {
        let verdicts = vec![
            Verdict::new(ConditionType::Ready, Truth::True, Reason::Ready),
            Verdict::new(ConditionType::Accepted, Truth::True, Reason::Accepted),
        ];
        Self { status, verdicts, again: None }
    }

    /// Accepted, and not Ready.
    pub(crate) fn not_ready(status: S, reason: Reason, outlook: Outlook) -> Self {
        let mut standing = Self::ready(status);
        standing.verdicts[0] = Verdict::new(ConditionType::Ready, Truth::False, reason);
        standing.verdicts.push(outlook.verdict(reason));
        standing
    }

    /// Not accepted. Others may clear the way, so it is looked at again soon.
    pub(crate) fn refused(status: S, reason: Reason, outlook: Outlook) -> Self {
        let verdicts = vec![
            Verdict::new(ConditionType::Ready, Truth::False, reason),
            Verdict::new(ConditionType::Accepted, Truth::False, reason),
            outlook.verdict(reason),
        ];
        Self { status, verdicts, again: Some(REFUSED_AGAIN) }
    }

    /// Looked at again soon: what it waits for tells nobody.
    pub(crate) fn soon(self) -> Self {
        Self { again: Some(REFUSED_AGAIN), ..self }
    }

    /// With a further condition.
    pub(crate) fn with(mut self, verdict: Verdict) -> Self {
        self.verdicts.push(verdict);
        self
    }

    /// With more to say than the reasons do.
    pub(crate) fn explained(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let reason = self.verdicts[0].reason;
        for verdict in self.verdicts.iter_mut().filter(|verdict| verdict.reason == reason) {
            verdict.message = message.clone();
        }
        self
    }
}

impl Outlook {
    fn verdict(self, reason: Reason) -> Verdict {
        let kind = match self {
            Self::Waits => ConditionType::Reconciling,
            Self::Stuck => ConditionType::Stalled,
        };
        Verdict::new(kind, Truth::True, reason)
    }
}
