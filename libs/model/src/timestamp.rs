//! The format of times in the interface.

use jiff::Timestamp;

/// Formats as RFC 3339 in UTC with milliseconds: `2026-11-21T10:00:00.123Z`.
pub fn timestamp(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_times_with_milliseconds() {
        let at = |text: &str| timestamp(text.parse().unwrap());
        assert_eq!(at("2026-11-21T10:00:00Z"), "2026-11-21T10:00:00.000Z");
        assert_eq!(at("2026-11-21T10:00:00.123999Z"), "2026-11-21T10:00:00.123Z");
        assert_eq!(at("2026-11-21T10:00:00.1234Z"), "2026-11-21T10:00:00.123Z");
    }
}
