//! Addresses that stand in text.

use std::ops::Range;

/// The http and https addresses in a text, in order, without the punctuation that follows them.
pub(super) fn urls_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let colon = at + text[at..].find("://")?;
            at = colon + 3;
            let Some(start) = scheme_start(text, colon) else { continue };
            let len = text[at..].find(|c: char| !is_of_url(c)).unwrap_or(text.len() - at);
            let end = at + trimmed_len(&text[at..at + len], text[..start].chars().next_back());
            if end > at {
                at = end;
                return Some(start..end);
            }
        }
    })
}

fn scheme_start(text: &str, colon: usize) -> Option<usize> {
    let ends_with = |scheme: &str| {
        let start = colon.checked_sub(scheme.len())?;
        text.get(start..colon)?.eq_ignore_ascii_case(scheme).then_some(start)
    };
    ends_with("https").or_else(|| ends_with("http"))
}

/// Whether an address may have the character.
pub(super) fn is_of_url(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '\\' | '^' | '|')
}

/// The length without punctuation that belongs to the text around, which begins with `before`.
fn trimmed_len(url: &str, before: Option<char>) -> usize {
    let count = |of: u8| url.bytes().filter(|byte| *byte == of).count();
    let mut unopened = [
        (b')', count(b')').saturating_sub(count(b'('))),
        (b']', count(b']').saturating_sub(count(b'['))),
        (b'}', count(b'}').saturating_sub(count(b'{'))),
    ];
    let mut end = url.len();
    while let Some(last) = url.as_bytes()[..end].last() {
        let is_punctuation = match last {
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b'\'' => true,
            b'*' => before == Some('*'),
            b'_' => before == Some('_'),
            _ => unopened.iter_mut().find(|(close, left)| close == last && *left > 0).is_some_and(
                |(_, left)| {
                    *left -= 1;
                    true
                },
            ),
        };
        if !is_punctuation {
            break;
        }
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(text: &str) -> Vec<&str> {
        urls_in(text).map(|range| &text[range]).collect()
    }

    #[test]
    fn punctuation_and_brackets_around_are_no_part() {
        assert_eq!(
            urls("see (https://a.example/x_(y)), <http://b.example/?a=1>."),
            ["https://a.example/x_(y)", "http://b.example/?a=1"]
        );
        assert_eq!(
            urls("[ok](HTTPS://a.example/b). *https://c.example*"),
            ["HTTPS://a.example/b", "https://c.example"]
        );
        assert_eq!(urls("请点击https://a.example/b?t=1。谢谢"), ["https://a.example/b?t=1"]);
        assert!(urls("ftp://a.example x:// https://").is_empty());
    }
}
