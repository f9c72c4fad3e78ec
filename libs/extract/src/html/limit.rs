//! A limit for the attributes of an element: the tokenizer compares each with all others.

use std::borrow::Cow;

use crate::bounds::ATTRIBUTES_MAX;

/// Where a scan is within a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Name,
    /// After `=`.
    Value,
    Unquoted,
    Quoted(u8),
}

/// The document without attributes beyond the limit.
pub(super) fn limit_attributes(html: &str) -> Cow<'_, str> {
    let bytes = html.as_bytes();
    let mut kept: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|byte| *byte == b'<') {
        let start = at + open + 1;
        if !bytes.get(start).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/') {
            at = start;
            continue;
        }
        let (excess, end) = scan_tag(bytes, start);
        if let Some(excess) = excess {
            let kept = kept.get_or_insert_default();
            kept.push_str(&html[copied..excess]);
            copied = end;
        }
        at = end;
    }
    match kept {
        None => Cow::Borrowed(html),
        Some(mut kept) => {
            kept.push_str(&html[copied..]);
            Cow::Owned(kept)
        }
    }
}

/// Where a tag has too many attributes, if it has, and where it ends: at its `>`.
fn scan_tag(bytes: &[u8], start: usize) -> (Option<usize>, usize) {
    let mut state = State::Name;
    let mut attributes = 0;
    let mut excess = None;
    for (offset, byte) in bytes[start..].iter().enumerate() {
        let at = start + offset;
        let is_gap = byte.is_ascii_whitespace() || *byte == b'/';
        state = match (state, byte) {
            (State::Quoted(quote), byte) => {
                if *byte == quote {
                    State::Between
                } else {
                    state
                }
            }
            (_, b'>') => return (excess, at),
            (State::Value, b'"' | b'\'') => State::Quoted(*byte),
            (State::Value, byte) if byte.is_ascii_whitespace() => State::Value,
            (State::Value | State::Unquoted, byte) => {
                if byte.is_ascii_whitespace() {
                    State::Between
                } else {
                    State::Unquoted
                }
            }
            (State::Between | State::Name, b'=') if attributes > 0 => State::Value,
            (State::Between | State::Name, _) if is_gap => State::Between,
            (State::Name, _) => State::Name,
            (State::Between, _) => {
                attributes += 1;
                if attributes > ATTRIBUTES_MAX && excess.is_none() {
                    excess = Some(at);
                }
                State::Name
            }
        };
    }
    (excess, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_attributes_stay() {
        let html = "<a href='x>y' b>1 < 2</a><p data=\"<\">";
        assert!(matches!(limit_attributes(html), Cow::Borrowed(_)));
    }

    #[test]
    fn attributes_beyond_the_limit_go() {
        let many: String = (0..1_000).map(|i| format!(" a{i}=\">\"")).collect();
        let html = format!("<p{many}>text</p><b>é</b>");
        let limited = limit_attributes(&html);
        assert!(limited.len() < 2_000 && limited.ends_with(">text</p><b>é</b>"), "{limited}");
    }
}
