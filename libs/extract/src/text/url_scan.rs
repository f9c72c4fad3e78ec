//! Addresses that stand in text.

use std::ops::Range;

use crate::steps;

/// Brackets that an address may have.
const BRACKETS: [(u8, u8); 3] = [(b'(', b')'), (b'[', b']'), (b'{', b'}')];

/// Characters of addresses without a gap, in which there may be several.
#[derive(Default)]
struct Word {
    end: usize,
    /// Where brackets open that the word does not close, the first one last. They belong to the text after an address.
    unclosed: Vec<usize>,
}

impl Word {
    /// The word at a place.
    fn at(text: &str, start: usize) -> Self {
        let rest = &text[start..];
        let word = &rest[..rest.find(|c: char| !is_of_url(c)).unwrap_or(rest.len())];
        steps::count(word.len());
        let mut unclosed = Vec::new();
        // Brackets of each kind that are closed after a place.
        let mut closed = [0_usize; BRACKETS.len()];
        for (at, byte) in word.bytes().enumerate().rev() {
            for ((open, close), closed) in BRACKETS.iter().zip(&mut closed) {
                if byte == *close {
                    *closed += 1;
                } else if byte == *open {
                    match closed.checked_sub(1) {
                        Some(fewer) => *closed = fewer,
                        None => unclosed.push(start + at),
                    }
                }
            }
        }
        Self { end: start + word.len(), unclosed }
    }

    /// The end of the address that is at a place in the word; places must not go back.
    fn end_of_address(&mut self, at: usize) -> usize {
        while self.unclosed.pop_if(|open| *open < at).is_some() {}
        self.unclosed.last().copied().unwrap_or(self.end)
    }
}

/// The http and https addresses in a text, in order, without the punctuation that follows them.
pub(super) fn urls_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let mut word = Word::default();
    std::iter::from_fn(move || {
        loop {
            let colon = at + text[at..].find("://")?;
            at = colon + 3;
            let Some(start) = scheme_start(text, colon) else { continue };
            if at >= word.end {
                word = Word::at(text, at);
            }
            let address = &text[at..word.end_of_address(at)];
            let end = at + trimmed_len(address, text[..start].chars().next_back());
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
    steps::count(url.len());
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
        assert_eq!(
            urls(
                "https://a.example/?t=1(expires https://b.example/(c)(d https://c.example/a[1 https://d.example/}{"
            ),
            ["https://a.example/?t=1", "https://b.example/(c)", "https://c.example/a", "https://d.example/"]
        );
        assert_eq!(
            urls("https://a.example/b(https://c.example/d)(e"),
            ["https://a.example/b(https://c.example/d)"]
        );
        assert_eq!(
            urls("https://a.example/b(https://c.example/d"),
            ["https://a.example/b", "https://c.example/d"]
        );
        assert_eq!(urls("https://[::1]/a"), ["https://[::1]/a"]);
        assert!(urls("ftp://a.example x:// https://").is_empty());
    }
}
