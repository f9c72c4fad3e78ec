//! The header field `Prefer` (RFC 7240), of which `wait` is understood.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use tempmail_model::limits::LONG_POLL_SECONDS;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The seconds that a client prefers a long-poll to wait at most, from 0 to 25. Other values are no preference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PreferredWait(Option<u64>);

impl PreferredWait {
    /// How long the request waits at most, if there is a preference.
    pub(crate) fn hold(self) -> Option<Duration> {
        self.0.map(Duration::from_secs)
    }

    /// Tells the client that its preference was applied.
    pub(crate) fn confirm(self, response: &mut Response) {
        if let Some(seconds) = self.0
            && let Ok(applied) = HeaderValue::try_from(format!("wait={seconds}"))
        {
            response.headers_mut().insert(PREFERENCE_APPLIED, applied);
        }
    }

    fn of(headers: &HeaderMap) -> Self {
        let fields = headers.get_all(PREFER).into_iter().filter_map(|field| field.to_str().ok());
        // Of a preference that is repeated the first one counts.
        let first = fields.flat_map(|field| split_unquoted(field, ',')).find_map(value_of_wait);
        Self(first.and_then(seconds).filter(|seconds| *seconds <= LONG_POLL_SECONDS))
    }
}

impl<S: Sync> FromRequestParts<S> for PreferredWait {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// The value of a preference that is `wait`; its parameters are ignored.
fn value_of_wait(preference: &str) -> Option<&str> {
    let preference = split_unquoted(preference, ';').next()?;
    let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
    name.trim().eq_ignore_ascii_case("wait").then_some(value.trim())
}

/// A number of seconds, which may be in quotes.
fn seconds(value: &str) -> Option<u64> {
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let digits = quoted.unwrap_or(value);
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The parts of a text between separators that are not in a quoted string.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return c == separator && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(fields: &[&'static str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(PREFER, HeaderValue::from_static(field));
        }
        PreferredWait::of(&headers).0
    }

    #[test]
    fn reads_the_first_wait_of_all_preferences() {
        for (fields, expected) in [
            (&["wait=0"][..], Some(0)),
            (&["WAIT = \"7\" ; foo=bar"], Some(7)),
            (&["respond-async, wait=25, wait=3"], Some(25)),
            (&["return=minimal", "handling=\"a, wait=3; \\\" b\"", "wait=007"], Some(7)),
        ] {
            assert_eq!(preferred(fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn ignores_what_is_no_number_of_seconds_up_to_25() {
        for fields in [
            &[][..],
            &[""],
            &["wait"],
            &["wait="],
            &["wait=26"],
            &["wait=-1"],
            &["wait=1.5"],
            &["wait=99999999999999999999999"],
            &["wait=\"5"],
            &["waiting=5, x; wait=5"],
            &["wait=x, wait=5"],
        ] {
            assert_eq!(preferred(fields), None, "{fields:?}");
        }
    }
}
