//! How long mail is kept: one of six retention classes, stamped on a message at acceptance.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A retention in whole hours; also the name of the partitions that hold its mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i16", into = "i16")]
pub struct RetentionClass(i16);

impl RetentionClass {
    /// Every class there is, shortest first.
    pub const ALL: [Self; 6] = [Self(1), Self(6), Self(24), Self(72), Self(168), Self(720)];
    /// The shortest: from this age on an unknown id is answered as expired.
    pub const SHORTEST: Self = Self(1);
    /// The class of free mail and shared inboxes by default.
    pub const FREE: Self = Self(1);
    /// The class of a Pro tenant by default.
    pub const PRO: Self = Self(72);

    /// Hours that mail of this class is kept.
    pub const fn hours(self) -> i16 {
        self.0
    }

    /// Time that mail of this class is kept.
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.0))
    }

    /// Width of one partition of this class: 5 min for 1 h, else retention / 36.
    pub fn partition_width(self) -> SignedDuration {
        let seconds = if self.0 == 1 { 300 } else { i64::from(self.0) * 100 };
        SignedDuration::from_secs(seconds)
    }

    /// When a message of this class that was accepted at `accepted` stops being served.
    pub fn expires_at(self, accepted: Timestamp) -> Timestamp {
        accepted + self.duration()
    }
}

/// A number of hours that is no retention class.
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
