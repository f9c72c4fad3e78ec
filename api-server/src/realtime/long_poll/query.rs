//! The query parameters of a long-poll.

use std::time::Duration;

use axum::http::Uri;
use serde_json::json;
use tempmail_model::limits::{LONG_POLL_LIMIT, LONG_POLL_MAX, LONG_POLL_SECONDS};

use crate::http::error::ApiError;
use crate::http::parameter::unique_query_parameters;
use crate::http::prefer::PreferredWait;
use crate::openapi::{Operation, query};
use crate::realtime::filter::Filter;

/// The query of a long-poll. Unknown parameters are ignored, `wait` among them: only `Prefer` shortens the hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongPollQuery {
    /// The cursor, still sealed, or `0`.
    pub(crate) since: Option<String>,
    /// New messages to wait for, 1 to 50.
    pub(crate) count: usize,
    /// Messages in one answer, 1 to 50.
    pub(crate) limit: usize,
    /// Which messages match.
    pub(crate) filter: Filter,
    /// How long the request waits at most.
    pub(crate) hold: Duration,
}

/// Adds the parameters of a long-poll to its description.
pub(super) fn described(operation: Operation) -> Operation {
    let text = || json!({"type": "string"});
    let number = |default: u32| json!({"type": "integer", "minimum": 1, "default": default});
    operation
        .parameter(query(
            "since",
            "Cursor of an earlier answer: only newer mail counts. `0`: all unexpired mail counts, the oldest first.",
            json!({"type": "string", "minLength": 1}),
        ))
        .parameter(query(
            "count",
            "Answer as soon as this many messages have arrived; above 50 counts as 50.",
            number(1),
        ))
        .parameter(query("limit", "Messages in one answer; above 50 counts as 50.", number(LONG_POLL_LIMIT)))
        .parameter(query("from", "Only mail whose From contains this, ignoring case.", text()))
        .parameter(query("subject", "Only mail whose Subject contains this, ignoring case.", text()))
        .parameter(json!({"name": "Prefer", "in": "header", "required": false,
                          "description": "`wait=N` (RFC 7240): wait N seconds at most, up to 25; `wait=0` \
                                          never waits. The answer repeats it in `Preference-Applied`. \
                                          Anything else is ignored.",
                          "schema": {"type": "string"}}))
}

impl LongPollQuery {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: `count` or `limit` is not an integer from 1, or a parameter is
    /// repeated.
    pub(crate) fn parse(uri: &Uri, preferred: PreferredWait) -> Result<Self, ApiError> {
        let [since, count, limit, from, subject] =
            unique_query_parameters(uri, ["since", "count", "limit", "from", "subject"])
                .ok_or(ApiError::InvalidRequest("Each query parameter must be given once.".into()))?;
        Ok(Self {
            since,
            count: number(count.as_deref(), 1).ok_or_else(invalid_number)?,
            limit: number(limit.as_deref(), LONG_POLL_LIMIT).ok_or_else(invalid_number)?,
            filter: Filter::new(from.as_deref(), subject.as_deref()),
            hold: preferred.hold().unwrap_or(Duration::from_secs(LONG_POLL_SECONDS)),
        })
    }
}

fn invalid_number() -> ApiError {
    ApiError::InvalidRequest("`count` and `limit` must be integers from 1.".into())
}

/// An integer from 1; above 50 counts as 50, however many digits it has.
fn number(value: Option<&str>, default: u32) -> Option<usize> {
    let number = match value {
        None => default,
        Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().unwrap_or(u32::MAX)
        }
        Some(_) => return None,
    };
    (number > 0).then(|| usize::try_from(number.min(LONG_POLL_MAX)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<LongPollQuery, ApiError> {
        LongPollQuery::parse(
            &format!("/v1/inbox/a@b.example{query}").parse().unwrap(),
            PreferredWait::default(),
        )
    }

    #[test]
    fn applies_defaults_and_ignores_unknown_parameters() {
        for query in ["", "?", "?wait=5&foo=bar&foo=baz"] {
            let parsed = parse(query).unwrap();
            assert_eq!((parsed.since, parsed.count, parsed.limit), (None, 1, 20), "{query}");
            assert!(parsed.filter.is_empty());
            assert_eq!(parsed.hold, Duration::from_secs(25));
        }
    }

    #[test]
    fn caps_count_and_limit_at_50() {
        for (query, count, limit) in [
            ("?count=50&limit=1", 50, 1),
            ("?count=51&limit=9999999999999999999999", 50, 50),
            ("?count=007", 7, 20),
        ] {
            let parsed = parse(query).unwrap();
            assert_eq!((parsed.count, parsed.limit), (count, limit), "{query}");
        }
    }

    #[test]
    fn rejects_other_numbers_and_repeated_parameters() {
        for query in [
            "?count=0",
            "?count=-1",
            "?limit=00",
            "?limit=",
            "?count=1.0",
            "?count=%2B1",
            "?count=x",
            "?limit=1e1",
            "?count=1&count=2",
            "?since=a&since=b",
            "?count=\u{661}",
        ] {
            let uri = query.replace('\u{661}', "%D9%A1");
            assert!(matches!(parse(&uri), Err(ApiError::InvalidRequest(_))), "{query}");
        }
    }

    #[test]
    fn decodes_texts() {
        let parsed = parse("?since=abc&from=Alice%20B&subject=caf%C3%A9+x").unwrap();
        assert_eq!(parsed.since.as_deref(), Some("abc"));
        assert_eq!(parsed.filter, Filter::new(Some("alice b"), Some("CAFÉ X")));
    }
}
