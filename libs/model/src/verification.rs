//! The verification of custom domains: where it stands, and what the name servers have.

/// Where the verification of a custom domain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyStatus {
    /// Its records were not seen yet.
    Pending,
    /// It serves.
    Verified,
    /// It serves no longer, or never did.
    Failed,
}

/// Why a custom domain is [`VerifyStatus::Failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReason {
    /// Its records were not seen before the deadline.
    VerificationTimedOut,
    /// Its records were wrong too often in a row.
    RecordsLost,
    /// Another tenant proved that the name is theirs.
    ClaimedByAnother,
}

impl VerifyStatus {
    /// The word for it in the interface and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }
}

impl FailureReason {
    /// The word for it in the interface and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VerificationTimedOut => "verification_timed_out",
            Self::RecordsLost => "records_lost",
            Self::ClaimedByAnother => "claimed_by_another",
        }
    }
}

/// What the servers that voted found of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Every voting server has it.
    Found,
    /// A voting server has nothing in its place.
    Missing,
    /// A voting server has something else in its place.
    Mismatch,
    /// Nobody voted.
    Unknown,
}

/// What was found of one record, and what was seen in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFinding {
    /// What was found.
    pub finding: Finding,
    /// What the servers have that have something else: at most 5 texts of at most 255 characters,
    /// without control characters, sorted, each once. Empty unless it is [`Finding::Mismatch`].
    pub seen: Vec<String>,
}

/// What a check found of both records.
#[derive(Debug, Clone, Copy)]
pub struct RecordFindings<'a> {
    /// The TXT record.
    pub txt: &'a RecordFinding,
    /// The MX record.
    pub mx: &'a RecordFinding,
}

impl Finding {
    /// The word for it in metrics and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missing => "missing",
            Self::Mismatch => "mismatch",
            Self::Unknown => "unknown",
        }
    }
}

impl RecordFinding {
    /// Nobody voted.
    pub const UNKNOWN: Self = Self { finding: Finding::Unknown, seen: Vec::new() };
}
