//! The query parameters of a long-poll.

use axum::http::Uri;
use serde_json::json;
use tempmail_model::limits::{LONG_POLL_LIMIT, LONG_POLL_MAX};

use super::filter::Filter;
use crate::error::V1Error;
use crate::openapi::{Operation, query};
use crate::parameter::texts_of_query;

/// What a long-poll asks for. Parameters it does not know are ignored (`wait` among them: the
/// hold is fixed).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LongPollQuery {
    /// The cursor, still sealed.
    pub(crate) since: Option<String>,
    /// New messages to wait for, 1 to 50.
    pub(crate) count: usize,
    /// Messages in one answer, 1 to 50.
    pub(crate) limit: usize,
    /// Which messages count.
    pub(crate) filter: Filter,
}

/// Adds the parameters of a long-poll to its description.
pub(super) fn described(operation: Operation) -> Operation {
    let text = || json!({"type": "string"});
    let number = |default: u32| json!({"type": "integer", "minimum": 1, "default": default});
    operation
        .parameter(query(
            "since",
            "Cursor of an earlier answer: only newer mail counts.",
            json!({"type": "string", "minLength": 1}),
        ))
        .parameter(query(
            "count",
            "Answer as soon as so many new messages are there; above 50 counts as 50.",
            number(1),
        ))
        .parameter(query("limit", "Messages in one answer; above 50 counts as 50.", number(LONG_POLL_LIMIT)))
        .parameter(query("from", "Only mail whose From contains this, in any case.", text()))
        .parameter(query("subject", "Only mail whose Subject contains this, in any case.", text()))
}

impl LongPollQuery {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// [`V1Error::InvalidRequest`]: `count` or `limit` is no integer from 1 on, or one of the
    /// parameters is there twice.
    pub(crate) fn of(uri: &Uri) -> Result<Self, V1Error> {
        let [since, count, limit, from, subject] =
            texts_of_query(uri, ["since", "count", "limit", "from", "subject"])
                .ok_or(V1Error::InvalidRequest)?;
        Ok(Self {
            since,
            count: number(count.as_deref(), 1)?,
            limit: number(limit.as_deref(), LONG_POLL_LIMIT)?,
            filter: Filter::new(from.as_deref(), subject.as_deref()),
        })
    }
}

/// An integer from 1 on; above 50 counts as 50, however many digits it has.
fn number(value: Option<&str>, default: u32) -> Result<usize, V1Error> {
    let number = match value {
        None => default,
        Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().unwrap_or(u32::MAX)
        }
        Some(_) => return Err(V1Error::InvalidRequest),
    };
    if number == 0 {
        return Err(V1Error::InvalidRequest);
    }
    Ok(usize::try_from(number.min(LONG_POLL_MAX)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<LongPollQuery, V1Error> {
        LongPollQuery::of(&format!("/v1/inbox/a@b.example{query}").parse().unwrap())
    }

    #[test]
    fn everything_is_optional() {
        for query in ["", "?", "?wait=5&foo=bar&foo=baz"] {
            let parsed = parse(query).unwrap();
            assert_eq!((parsed.since, parsed.count, parsed.limit), (None, 1, 20), "{query}");
            assert!(parsed.filter.is_empty());
        }
    }

    #[test]
    fn numbers_above_the_bound_count_as_the_bound() {
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
    fn what_is_no_integer_from_one_on_is_refused() {
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
            assert_eq!(parse(&uri), Err(V1Error::InvalidRequest), "{query}");
        }
    }

    #[test]
    fn texts_are_decoded() {
        let parsed = parse("?since=abc&from=Alice%20B&subject=caf%C3%A9+x").unwrap();
        assert_eq!(parsed.since.as_deref(), Some("abc"));
        assert_eq!(parsed.filter, Filter::new(Some("alice b"), Some("CAFÉ X")));
    }
}
