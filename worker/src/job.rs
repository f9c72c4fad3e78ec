//! The jobs that a worker repeats.

use std::time::Duration;

/// A job that a worker repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Creates partitions before mail needs them.
    CreatePartitions,
    /// Detaches and drops partitions whose mail has expired.
    DropPartitions,
    /// Carries out deletions that owners requested.
    Purge,
    /// Removes idle mailboxes, released addresses, tokens that ended a week ago.
    Cleanup,
    /// Checks the DNS records of custom domains that are due.
    VerifyDomains,
    /// Sends new entries of the audit trail to the log.
    LogAudit,
    /// Seals again with the first key what another key of the ring sealed.
    Reseal,
}

impl Job {
    /// Every job, in the order in which a single pass of all of them runs.
    pub(crate) const ALL: [Self; 7] = [
        Self::CreatePartitions,
        Self::VerifyDomains,
        Self::Cleanup,
        Self::Purge,
        Self::DropPartitions,
        Self::LogAudit,
        Self::Reseal,
    ];

    /// Its name in metrics and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreatePartitions => "create_partitions",
            Self::DropPartitions => "drop_partitions",
            Self::Purge => "purge",
            Self::Cleanup => "cleanup",
            Self::VerifyDomains => "verify_domains",
            Self::LogAudit => "log_audit",
            Self::Reseal => "reseal",
        }
    }

    /// Time between the end of a pass and the next one.
    pub(crate) fn period(self) -> Duration {
        Duration::from_secs(match self {
            Self::CreatePartitions | Self::DropPartitions => 30,
            Self::Purge => 1,
            Self::Cleanup | Self::Reseal => 300,
            Self::VerifyDomains | Self::LogAudit => 5,
        })
    }
}
