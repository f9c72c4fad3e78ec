//! Tokens of a line, and runs of them that may be one code written in groups.

use std::ops::Range;

use super::shape::{LENGTHS, is_year};
use crate::text::Text;

/// ASCII letters and digits with single hyphens between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) range: Range<usize>,
    /// Whether it is digits only, hyphens apart.
    pub(super) is_digits: bool,
    pub(super) has_hyphen: bool,
    pub(super) has_digit: bool,
    pub(super) has_small: bool,
}

impl Token {
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it may be a code or a part of one: it has a digit, or capitals only.
    pub(super) fn may_be_code(&self) -> bool {
        self.has_digit || !self.has_small
    }

    fn is_plain_digits(&self) -> bool {
        self.is_digits && !self.has_hyphen
    }
}

/// The tokens of a line that begins at `line_start`, by their places in the text.
pub(super) fn tokens(line: &str, line_start: usize) -> Vec<Token> {
    let bytes = line.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        let mut token = Token {
            range: line_start + start..line_start + start,
            is_digits: true,
            has_hyphen: false,
            has_digit: false,
            has_small: false,
        };
        while at < bytes.len() {
            let byte = bytes[at];
            if byte == b'-' {
                if !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
                    break;
                }
                token.has_hyphen = true;
            } else if byte.is_ascii_alphanumeric() {
                token.is_digits &= byte.is_ascii_digit();
                token.has_digit |= byte.is_ascii_digit();
                token.has_small |= byte.is_ascii_lowercase();
            } else {
                break;
            }
            at += 1;
        }
        token.range.end = line_start + at;
        tokens.push(token);
    }
    tokens
}

/// How many tokens from the first on are digits in groups, apart by what may separate groups.
pub(super) fn group_run(text: &Text, tokens: &[Token]) -> usize {
    let mut count = 0;
    for (index, token) in tokens.iter().enumerate() {
        if !token.is_plain_digits() {
            break;
        }
        if index > 0 {
            let before = &tokens[index - 1];
            let gap = &text[before.range.end..token.range.start];
            let singles = before.len() == 1 && token.len() == 1;
            let joins = match gap {
                " " | " - " | "·" | " · " | "\t" | "\t-\t" | " \t-\t " => {
                    before.len() == token.len() || gap == " "
                }
                gap => {
                    singles
                        && gap.len() <= 6
                        && gap.chars().all(|c| c.is_whitespace() || matches!(c, '|' | '.' | ','))
                }
            };
            if !joins {
                break;
            }
        }
        count += 1;
    }
    count
}

/// The digits of groups that may be one code: all of one length, 2 to 4, or single ones.
pub(super) fn joined_groups(groups: &[&str]) -> Option<String> {
    let first = groups.first()?.len();
    let total: usize = groups.iter().map(|group| group.len()).sum();
    let is_even = groups.iter().all(|group| group.len() == first);
    let fits = match first {
        1 => (4..=10).contains(&groups.len()),
        2 => (2..=4).contains(&groups.len()),
        3 => (2..=4).contains(&groups.len()),
        4 => (2..=3).contains(&groups.len()),
        _ => false,
    };
    let are_years = groups.iter().all(|group| is_year(group));
    (is_even && fits && !are_years && LENGTHS.contains(&total)).then(|| groups.concat())
}

/// Octets of an account number, and one more that tells where it ends.
pub(super) const IBAN_MAX: usize = 64;

/// The length of the account number that a text begins with, if it does: `DE89 3704 0044 …`, grouped or not.
pub(super) fn iban_len(text: &str) -> Option<usize> {
    let is_group = |group: &str| {
        (1..=4).contains(&group.len())
            && group.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    let word_at = |at: usize| {
        let len = text[at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        &text[at..at + len]
    };
    let first = word_at(0);
    let begins = first.len() >= 4
        && first.bytes().take(2).all(|byte| byte.is_ascii_uppercase())
        && first.bytes().skip(2).take(2).all(|byte| byte.is_ascii_digit());
    if !begins || (first.len() > 4 && first.len() < 15) || first.len() > 34 {
        return None;
    }
    let mut end = first.len();
    let mut groups = 0;
    while first.len() == 4 && groups < 8 && matches!(text.as_bytes().get(end), Some(b' ' | b'\n')) {
        let group = word_at(end + 1);
        if !is_group(group) {
            break;
        }
        end += 1 + group.len();
        groups += 1;
        if group.len() < 4 {
            break;
        }
    }
    (first.len() > 4 || groups >= 3).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_account_numbers() {
        let end = |text: &str| iban_len(text).map(|end| text[..end].to_owned());
        assert_eq!(end("NL91 ABNA 0417 1643 00 is 387").as_deref(), Some("NL91 ABNA 0417 1643 00"));
        assert_eq!(end("DE89370400440532013000.").as_deref(), Some("DE89370400440532013000"));
        assert_eq!(end("AB12 is"), None);
    }

    #[test]
    fn even_groups_are_one() {
        assert_eq!(joined_groups(&["123", "456"]).as_deref(), Some("123456"));
        assert_eq!(joined_groups(&["1", "2", "3", "4"]).as_deref(), Some("1234"));
        for groups in
            [&["555", "1234"][..], &["2024", "2025"], &["1", "234", "567"], &["4111", "1111", "1111", "1111"]]
        {
            assert_eq!(joined_groups(groups), None);
        }
    }

    #[test]
    fn finds_tokens() {
        let text = "a: G-123456, (X7K-9QD) 12- -3";
        let found: Vec<_> = tokens(text, 0).into_iter().map(|token| &text[token.range]).collect();
        assert_eq!(found, ["a", "G-123456", "X7K-9QD", "12", "3"]);
    }
}
