//! Times as the interface writes them.

use jiff::Timestamp;

/// RFC 3339, UTC, milliseconds: `2026-11-21T10:00:00.123Z`.
pub fn timestamp(at: Timestamp) -> String {
    format!("{at:.3}")
}
