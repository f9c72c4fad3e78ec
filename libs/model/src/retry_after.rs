//! `Retry-After` of a response (RFC 9110 10.2.3).

use jiff::{SignedDuration, Timestamp};

/// When a request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// After this time.
    Delay(SignedDuration),
    /// At this time.
    Date(Timestamp),
}

impl RetryAfter {
    /// Parses the value of the field: seconds, or a date in any of the three forms of HTTP.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            // Larger numbers are too long in any case.
            let seconds = value.parse().unwrap_or(u32::MAX);
            return Some(Self::Delay(SignedDuration::from_secs(seconds.into())));
        }
        let date = httpdate::parse_http_date(value).ok()?;
        // One that is beyond all times is far enough.
        Some(Self::Date(Timestamp::try_from(date).unwrap_or(Timestamp::MAX)))
    }

    /// How long to wait from now on; not at all where the date has passed.
    pub fn delay(self, now: Timestamp) -> SignedDuration {
        match self {
            Self::Delay(delay) => delay,
            Self::Date(date) => date.duration_since(now).max(SignedDuration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "1994-11-06T08:49:00Z";

    #[test]
    fn reads_seconds_and_all_forms_of_dates() {
        for (value, seconds) in [
            ("0", 0),
            (" 37 ", 37),
            ("99999999999999999999", u32::MAX.into()),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 37),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
            ("Sun Nov  6 08:49:37 1994", 37),
            ("Sun, 06 Nov 1994 08:48:00 GMT", 0),
        ] {
            let delay = RetryAfter::parse(value).map(|parsed| parsed.delay(NOW.parse().unwrap()));
            assert_eq!(delay, Some(SignedDuration::from_secs(seconds)), "{value}");
        }
    }

    #[test]
    fn ignores_what_is_neither() {
        for value in ["", "-1", "+1", "1.5", "1e9", "soon", "Sun, 06 Nov 1994", "1994-11-06T08:49:37Z"] {
            assert_eq!(RetryAfter::parse(value), None, "{value}");
        }
    }
}
