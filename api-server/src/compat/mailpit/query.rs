//! The words of a search: `from:`, `to:`, `cc:`, `bcc:`, `reply-to:`, `addressed:`, `subject:`, `message-id:`, `tag:`,
//! `is:read`, `is:unread`, `is:tagged`, `has:attachment`, `has:inline`, `before:`, `after:`, `larger:`, `smaller:`, and any
//! other word or `"phrase"`; with `-` or `!` before it, none of it.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use crate::compat::search::{self, Search, Term};
use crate::http::error::ApiError;

/// The search of a query, with dates in a time zone.
///
/// # Errors
/// A date, a size, a word after `is:` or `has:`, or the time zone is not one; a word is too long, or there are too many.
pub(super) fn parse(query: &str, time_zone: Option<&str>) -> Result<Search, ApiError> {
    let zone = match time_zone {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|_unknown| {
            ApiError::InvalidRequest("`tz` must be a time zone, such as Europe/Vienna.".into())
        })?,
    };
    let mut search = Search::new();
    for Word { text, is_negated, is_quoted } in words(query) {
        let term = match text.split_once(':') {
            Some((name, value)) if !is_quoted => match named(&name.to_lowercase(), value, &zone)? {
                Some(term) => term,
                None => Term::Anywhere(search::Word::parse(&text)?),
            },
            _ => Term::Anywhere(search::Word::parse(&text)?),
        };
        search.add(term, is_negated)?;
    }
    Ok(search)
}

/// The term of a word with a name; `None` where the name is none, such as in `10:30`.
fn named(name: &str, value: &str, zone: &TimeZone) -> Result<Option<Term>, ApiError> {
    let invalid = |sentence: &'static str| Err(ApiError::InvalidRequest(sentence.into()));
    let text = || search::Word::parse(value);
    Ok(Some(match name {
        "from" => Term::From(text()?),
        "to" => Term::To(text()?),
        "cc" => Term::Cc(text()?),
        "bcc" => Term::Bcc(text()?),
        "reply-to" => Term::ReplyTo(text()?),
        "addressed" => Term::Addressed(text()?),
        "subject" => Term::Subject(text()?),
        "message-id" => Term::MessageId(text()?),
        // Messages have no tags.
        "tag" => Term::Nothing,
        "is" => match value.to_lowercase().as_str() {
            "read" => Term::Read(true),
            "unread" => Term::Read(false),
            "tagged" => Term::Nothing,
            _ => return invalid("`is:` must be followed by read, unread or tagged."),
        },
        "has" => match value.to_lowercase().as_str() {
            "attachment" | "attachments" => Term::Attachment,
            "inline" | "inlines" => Term::Inline,
            _ => return invalid("`has:` must be followed by attachment or inline."),
        },
        "before" | "after" => match time(value, zone) {
            Some(time) if name == "before" => Term::Before(time),
            Some(time) => Term::Since(time),
            None => return invalid("`before:` and `after:` must be followed by a date, such as 2026-11-24."),
        },
        "larger" | "smaller" => match size(value) {
            Some(bytes) if name == "larger" => Term::Larger(bytes),
            Some(bytes) => Term::Smaller(bytes),
            None => {
                return invalid("`larger:` and `smaller:` must be followed by a size, such as 100K or 2M.");
            }
        },
        _ => return Ok(None),
    }))
}

/// A time, or the start of a day.
fn time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let text = text.replace('/', "-");
    let civil = text
        .parse::<DateTime>()
        .or_else(|_| text.parse::<Date>().map(|date| date.to_datetime(Time::midnight())));
    Some(civil.ok()?.to_zoned(zone.clone()).ok()?.timestamp())
}

/// A number of bytes, or of KiB or MiB with `k` or `m` behind it.
fn size(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('m').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

/// A word of a query, without its quotes and its sign.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_negated: bool,
    /// It begins with a quote.
    is_quoted: bool,
}

/// Splits a query at white space outside of quotes.
fn words(query: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let mut quote = None;
        let end = rest.find(|c: char| {
            match quote {
                Some(open) if c == open => quote = None,
                None if c == '"' => quote = Some(c),
                _ => {}
            }
            quote.is_none() && c.is_whitespace()
        });
        let (raw, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        let signed = raw.strip_prefix(['-', '!']).filter(|unsigned| !unsigned.is_empty());
        let (raw, is_negated) = signed.map_or((raw, false), |unsigned| (unsigned, true));
        let text = raw.replace('"', "");
        if !text.is_empty() {
            words.push(Word { is_quoted: raw.starts_with('"'), text, is_negated });
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(terms: &[(Term, bool)]) -> Search {
        let mut search = Search::new();
        terms.iter().for_each(|(term, is_negated)| search.add(term.clone(), *is_negated).unwrap());
        search
    }

    #[test]
    fn reads_every_word_of_a_query() {
        let day = "2026-11-24T00:00:00Z".parse().unwrap();
        for (query, terms) in [
            ("", vec![]),
            ("Hello  World", vec![Term::Anywhere("Hello".into()), Term::Anywhere("World".into())]),
            ("\"Hello World\"", vec![Term::Anywhere("Hello World".into())]),
            ("\"from:x\"", vec![Term::Anywhere("from:x".into())]),
            ("subject:\"Hello World\"", vec![Term::Subject("Hello World".into())]),
            ("FROM:a@b.example to:c", vec![Term::From("a@b.example".into()), Term::To("c".into())]),
            ("is:read is:unread", vec![Term::Read(true), Term::Read(false)]),
            ("has:attachments has:inline", vec![Term::Attachment, Term::Inline]),
            ("after:2026-11-24 before:2026/11/24", vec![Term::Since(day), Term::Before(day)]),
            ("after:\"2026-11-24 00:00\"", vec![Term::Since(day)]),
            ("before:2026-11-24T00:00:00Z", vec![Term::Before(day)]),
            ("larger:2M smaller:1kb", vec![Term::Larger(2 << 20), Term::Smaller(1 << 10)]),
            ("tag:x", vec![Term::Nothing]),
            ("10:30", vec![Term::Anywhere("10:30".into())]),
            ("-", vec![Term::Anywhere("-".into())]),
            ("\"open", vec![Term::Anywhere("open".into())]),
        ] {
            let terms: Vec<_> = terms.into_iter().map(|term| (term, false)).collect();
            assert_eq!(parse(query, None).unwrap(), search(&terms), "{query}");
        }
        let negated = parse("-from:a !b -\"c d\"", None).unwrap();
        let terms = [Term::From("a".into()), Term::Anywhere("b".into()), Term::Anywhere("c d".into())];
        assert_eq!(negated, search(&terms.map(|term| (term, true))));
    }

    #[test]
    fn rejects_what_is_no_date_size_or_state() {
        for wrong in [
            "before:yesterday",
            "after:",
            "larger:much",
            "is:old",
            "has:stamps",
            "smaller:99999999999999999999",
        ] {
            assert!(matches!(parse(wrong, None), Err(ApiError::InvalidRequest(_))), "{wrong}");
        }
        assert!(parse("x", Some("Nowhere/Town")).is_err());
    }

    #[test]
    fn splits_any_text() {
        for text in ["\"", "-\"\"", "\u{a0}-\u{a0}", "a\"b c\"d", "é:\"\u{2003}"] {
            let words = words(text);
            assert!(words.iter().all(|word| !word.text.is_empty()), "{words:?}");
        }
    }
}
