//! Addresses of fields such as `From` and `To` (RFC 5322 3.4), parsed one at a time.

use std::borrow::Cow;
use std::fmt;

use super::{decode_words, unfolded};
use crate::text;

/// An address. Both parts are decoded and have no control characters, and one of them is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// The display name, else the comment that old software uses instead, or "".
    pub name: String,
    /// `local@domain`, or "".
    pub email: String,
}

/// `name <email>`, or the part that is not empty.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.is_empty(), self.email.is_empty()) {
            (false, false) => write!(f, "{} <{}>", self.name, self.email),
            (true, _) => f.write_str(&self.email),
            (_, true) => f.write_str(&self.name),
        }
    }
}

/// Iterates over the addresses of a field's value, including those in groups.
pub fn parse_addresses(value: &[u8]) -> Addresses<'_> {
    Addresses { value: unfolded(value), at: 0 }
}

/// See [`parse_addresses`].
#[derive(Debug)]
pub struct Addresses<'a> {
    value: Cow<'a, str>,
    at: usize,
}

impl Iterator for Addresses<'_> {
    type Item = Address;

    fn next(&mut self) -> Option<Address> {
        while self.at < self.value.len() {
            let mut reader = AddressReader::default();
            let rest = &self.value[self.at..];
            let separator = rest.char_indices().find(|(_, c)| reader.push(*c));
            self.at = separator.map_or(self.value.len(), |(i, c)| self.at + i + c.len_utf8());
            if let Some(address) = reader.finish() {
                return Some(address);
            }
        }
        None
    }
}

/// The part of an address that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum AddressPart {
    /// The display name, or all of an address without angle brackets.
    #[default]
    Name,
    /// Within angle brackets.
    Angle,
    /// After the closing angle bracket.
    After,
}

/// The state of reading an address.
#[derive(Default)]
struct AddressReader {
    part: AddressPart,
    escaped: bool,
    quoted: bool,
    /// Nesting of open comments.
    comments: u32,
    name: String,
    comment: String,
    angle: String,
}

impl AddressReader {
    /// Reads a character; `true` if it ends the address.
    fn push(&mut self, c: char) -> bool {
        let escaped = std::mem::take(&mut self.escaped);
        if self.comments > 0 {
            match c {
                '\\' if !escaped => self.escaped = true,
                '(' if !escaped => self.comments += 1,
                ')' if !escaped => self.comments -= 1,
                _ => self.comment.push(c),
            }
            return false;
        }
        if self.quoted {
            self.push_quoted(c, escaped);
            return false;
        }
        match (self.part, c) {
            (_, '(') => self.comments = 1,
            (part, '"') => {
                self.quoted = true;
                if part == AddressPart::Angle {
                    self.angle.push(c);
                }
            }
            (AddressPart::Angle, '>') => self.part = AddressPart::After,
            (AddressPart::Angle, _) => self.angle.push(c),
            (_, ',' | ';') => return true,
            // The text so far is the name of a group.
            (_, ':') => *self = Self::default(),
            (AddressPart::Name, '<') => self.part = AddressPart::Angle,
            (AddressPart::Name, _) => self.name.push(c),
            (AddressPart::After, _) => {}
        }
        false
    }

    /// Reads a character of a quoted string, which keeps its quotes within angle brackets (a local
    /// part).
    fn push_quoted(&mut self, c: char, escaped: bool) {
        match c {
            '"' if !escaped => self.quoted = false,
            '\\' if !escaped => self.escaped = true,
            _ if self.part == AddressPart::Name => self.name.push(c),
            _ => {}
        }
        if self.part == AddressPart::Angle {
            self.angle.push(c);
        }
    }

    fn finish(self) -> Option<Address> {
        let shown = |text: &str| text::single_line(&decode_words(text.trim()));
        let mut address = Address { name: shown(&self.name), email: text::single_line(self.angle.trim()) };
        if address.email.is_empty() && is_email(self.name.trim()) {
            address.email = std::mem::take(&mut address.name);
        }
        if address.name.is_empty() && !address.email.is_empty() {
            address.name = shown(&self.comment);
        }
        (address != Address::default()).then_some(address)
    }
}

/// Whether a text without angle brackets is an address and not a name.
fn is_email(text: &str) -> bool {
    text.contains('@') && !text.contains(char::is_whitespace) && !text.contains("=?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_addresses_with_their_names() {
        for (value, expected) in [
            ("a@b.example", &["a@b.example"][..]),
            ("\"Doe, J.\" <j@b.example>, <k@b.example>", &["Doe, J. <j@b.example>", "k@b.example"]),
            ("=?utf-8?q?J=C3=B6rg?= <j@b.example> (home)", &["Jörg <j@b.example>"]),
            ("team: a@b.example, b@b.example; c@b.example", &["a@b.example", "b@b.example", "c@b.example"]),
            ("Pete(A \\) chap) <pete(his account)@b.example(host)>", &["Pete <pete@b.example>"]),
            ("\"A \\\"B\\\" C\" <\"d e\"@b.example>", &["A \"B\" C <\"d e\"@b.example>"]),
            ("k@b.example (Kay)", &["Kay <k@b.example>"]),
            ("undisclosed-recipients:;", &[]),
            ("(only, a comment)", &[]),
            ("", &[]),
        ] {
            let shown: Vec<_> =
                parse_addresses(value.as_bytes()).map(|address| address.to_string()).collect();
            assert_eq!(shown, expected, "{value}");
        }
    }

    #[test]
    fn does_not_take_names_for_addresses() {
        let email = |value: &str| parse_addresses(value.as_bytes()).next().unwrap().email;
        assert_eq!(email("a@b.example"), "a@b.example");
        assert_eq!(email("x <a@b.example>"), "a@b.example");
        for name in ["me", "me @ home", "=?utf-8?q?a@b?="] {
            assert_eq!(email(name), "", "{name}");
        }
    }
}
