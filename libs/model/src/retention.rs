//! Retention: one of six classes, which a message gets when it is accepted.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A retention class, named by its hours; also part of the names of its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i16", into = "i16")]
pub struct RetentionClass(i16);

impl RetentionClass {
    /// All classes, shortest first.
    pub const ALL: [Self; 6] = [Self(1), Self(6), Self(24), Self(72), Self(168), Self(720)];
    /// The shortest: from this age on an unknown id counts as expired.
    pub const SHORTEST: Self = Self(1);
    /// The default of free mailboxes and shared inboxes.
    pub const FREE: Self = Self(1);
    /// The default of a Pro tenant.
    pub const PRO: Self = Self(72);

    /// The retention in hours.
    pub const fn hours(self) -> i16 {
        self.0
    }

    /// The retention.
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.0))
    }

    /// The time span of a partition: 5 min for 1 h, else retention / 36.
    pub fn partition_width(self) -> SignedDuration {
        let seconds = if self.0 == 1 { 300 } else { i64::from(self.0) * 100 };
        SignedDuration::from_secs(seconds)
    }

    /// When a message that was accepted at `accepted` expires.
    pub fn expires_at(self, accepted: Timestamp) -> Timestamp {
        accepted + self.duration()
    }
}

impl Default for RetentionClass {
    fn default() -> Self {
        Self::FREE
    }
}

/// A number of hours that is not a retention class.
#[derive(Debug, thiserror::Error)]
#[error("retention must be 1, 6, 24, 72, 168 or 720 hours, not {0}")]
pub struct InvalidRetention(i16);

impl TryFrom<i16> for RetentionClass {
    type Error = InvalidRetention;

    fn try_from(hours: i16) -> Result<Self, InvalidRetention> {
        let class = Self(hours);
        if Self::ALL.contains(&class) { Ok(class) } else { Err(InvalidRetention(hours)) }
    }
}

impl From<RetentionClass> for i16 {
    fn from(class: RetentionClass) -> Self {
        class.0
    }
}
