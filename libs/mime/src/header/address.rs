//! Addresses of fields such as `From` and `To` (RFC 5322 3.4), parsed one at a time.

use std::borrow::Cow;
use std::fmt;

use super::{decode_words, unfolded};
use crate::text;

/// Octets of an address that a bracket which is not closed may have before it, so that reading takes linear time.
const EMAIL_MAX: usize = 1_024;

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

/// The state of reading an address.
#[derive(Default)]
struct AddressReader {
    escaped: bool,
    quoted: bool,
    /// Nesting of open comments.
    comments: u32,
    /// The display name, or all of an address without angle brackets.
    name: String,
    comment: String,
    /// What follows an open angle bracket.
    angle: Option<String>,
    email: String,
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
        match (&mut self.angle, c) {
            (_, '(') => self.comments = 1,
            (angle, '"') => {
                self.quoted = true;
                if let Some(angle) = angle {
                    angle.push(c);
                }
            }
            (Some(_), '>') => self.close_angle(">"),
            // The bracket before it belongs to the name.
            (_, '<') => {
                self.close_angle("");
                self.angle = Some(String::new());
            }
            // A bracket that is not closed. The commas of a route (RFC 5322 4.4) come before its address.
            (Some(angle), ',' | ';') if angle.len() <= EMAIL_MAX && is_email(angle) => return true,
            (Some(angle), _) => angle.push(c),
            (None, ',' | ';') => return true,
            // The text so far is the name of a group.
            (None, ':') => *self = Self::default(),
            (None, '>') if !self.email.is_empty() => {}
            (None, _) => self.name.push(c),
        }
        false
    }

    /// Reads a character of a quoted string, which keeps its quotes within angle brackets (a local
    /// part).
    fn push_quoted(&mut self, c: char, escaped: bool) {
        match &mut self.angle {
            Some(angle) => angle.push(c),
            None if escaped || !matches!(c, '"' | '\\') => self.name.push(c),
            None => {}
        }
        match c {
            '"' if !escaped => self.quoted = false,
            '\\' if !escaped => self.escaped = true,
            _ => {}
        }
    }

    /// Ends what is in angle brackets: an address, the last of which counts, or a part of the name.
    fn close_angle(&mut self, bracket: &str) {
        let Some(angle) = self.angle.take() else { return };
        let address = without_scheme(&angle);
        if is_email(address) {
            self.email = address.to_owned();
        } else if !angle.trim().is_empty() {
            self.name.extend(["<", &angle, bracket]);
        }
    }

    fn finish(mut self) -> Option<Address> {
        self.close_angle("");
        if self.email.is_empty() {
            self.take_email_of_name();
        }
        let shown = |text: &str| text::single_line(&decode_words(text.trim()));
        let mut address =
            Address { name: shown(without_brackets(&self.name)), email: text::single_line(&self.email) };
        if address.name.is_empty() && !address.email.is_empty() {
            address.name = shown(&self.comment);
        }
        (address != Address::default()).then_some(address)
    }

    /// Takes the last word of the name that is an address.
    fn take_email_of_name(&mut self) {
        let Some(found) = self.name.split_whitespace().rfind(|word| is_email(bare(word))) else { return };
        self.email = bare(found).to_owned();
        let others = self.name.split_whitespace().filter(|word| *word != found);
        self.name = others.collect::<Vec<_>>().join(" ");
    }
}

/// A word without what may be around an address; a domain literal keeps its brackets.
fn bare(word: &str) -> &str {
    if word.contains("@[") { word } else { word.trim_matches(['<', '>', '[', ']', '\'']) }
}

/// A name without angle brackets around all of it.
fn without_brackets(name: &str) -> &str {
    let name = name.trim();
    let inner = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
    inner.filter(|inner| !inner.contains(['<', '>'])).unwrap_or(name)
}

/// What is in angle brackets, without white space around it and the scheme of a URL.
fn without_scheme(angle: &str) -> &str {
    let angle = angle.trim();
    match angle.split_at_checked("mailto:".len()) {
        Some((scheme, address)) if scheme.eq_ignore_ascii_case("mailto:") => address,
        _ => angle,
    }
}

/// Whether a text is `local@domain`; white space may be in a quoted local part only.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.trim().rsplit_once('@') else { return false };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let is_word =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || "<>".contains(c));
    is_word(domain) && (is_quoted || (is_word(local) && !local.starts_with('@'))) && !text.contains("=?")
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
    fn finds_the_address_wherever_the_brackets_are() {
        for (value, name, email) in [
            ("matt <3 <matt@shop.example>", "matt <3", "matt@shop.example"),
            ("<3 matt <matt@shop.example> x", "<3 matt  x", "matt@shop.example"),
            ("<Jane Doe> jane@x.example", "Jane Doe", "jane@x.example"),
            ("<Jane Doe> <jane@x.example>", "Jane Doe", "jane@x.example"),
            ("Jane <Doe <jane@x.example>>", "Jane <Doe", "jane@x.example"),
            ("<mailto:a@b.example>", "", "a@b.example"),
            ("Jane <MAILTO:a@b.example>", "Jane", "a@b.example"),
            ("jane@x.example>", "", "jane@x.example"),
            ("<jane@x.example", "", "jane@x.example"),
            ("Jane [jane@x.example]", "Jane", "jane@x.example"),
            ("'jane@x.example'", "", "jane@x.example"),
            ("jane@[192.0.2.1]", "", "jane@[192.0.2.1]"),
            ("Jane jane@x.example", "Jane", "jane@x.example"),
            ("<<jane@x.example>>", "", "jane@x.example"),
            ("Jane <old@x.example> <jane@x.example>", "Jane", "jane@x.example"),
            ("\"a@b.example\" <jane@x.example>", "a@b.example", "jane@x.example"),
            ("<root>", "root", ""),
        ] {
            let address = parse_addresses(value.as_bytes()).next().unwrap();
            assert_eq!((address.name.as_str(), address.email.as_str()), (name, email), "{value}");
        }
        let both: Vec<_> = parse_addresses(b"Jane <jane@x.example, Bob <bob@x.example>").collect();
        assert_eq!(
            both.iter().map(|a| a.email.as_str()).collect::<Vec<_>>(),
            ["jane@x.example", "bob@x.example"]
        );
    }

    #[test]
    fn does_not_take_names_for_addresses() {
        let email = |value: &str| parse_addresses(value.as_bytes()).next().unwrap().email;
        assert_eq!(email("a@b.example"), "a@b.example");
        assert_eq!(email("x <a@b.example>"), "a@b.example");
        for name in [
            "me",
            "me @ home",
            "=?utf-8?q?a@b?=",
            "<Jane Doe>",
            "Mailer <root>",
            "a <@>",
            "<=?utf-8?q?a@b?=>",
        ] {
            assert_eq!(email(name), "", "{name}");
        }
    }
}
