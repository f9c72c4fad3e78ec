//! Header fields: splitting, unfolding, and decoding (RFC 2047).

mod address;
mod encoded_word;
mod parameter;

use std::borrow::Cow;

pub use address::{Address, Addresses, parse_addresses};
pub(crate) use encoded_word::decode_words;
pub(crate) use parameter::Parameters;
use parameter::begins_parameter;

use crate::text;

/// A raw header field.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The name, in its original case.
    pub name: &'a str,
    /// The value with its folding.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// The value as text, unfolded and trimmed; encoded words are as they were sent.
    pub fn unfolded(&self) -> Cow<'a, str> {
        unfolded(self.value)
    }
}

/// The fields of a header section, in order; lines that are not fields are skipped.
pub fn header_fields(section: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = section;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let mut end = line_end(rest, 0);
            let mut line = 0;
            while continues_field(&rest[line..end], &rest[end..]) {
                line = end;
                end = line_end(rest, end);
            }
            let (field, after) = rest.split_at(end);
            rest = after;
            if let Some(colon) = field_name_end(field) {
                let name = std::str::from_utf8(&field[..colon]).unwrap_or("").trim_end();
                return Some(Field { name, value: &field[colon + 1..] });
            }
        }
        None
    })
}

/// Whether a line continues the field that the line before it belongs to: it begins with white space or, as some
/// software folds fields, with a parameter after `;`.
pub(crate) fn continues_field(before: &[u8], line: &[u8]) -> bool {
    match line.first() {
        Some(b' ' | b'\t') => true,
        Some(b'a'..=b'z' | b'A'..=b'Z') => before.trim_ascii_end().ends_with(b";") && begins_parameter(line),
        _ => false,
    }
}

/// The length of the field name that a line starts with, up to its colon; `None` if there is none.
pub(crate) fn field_name_end(line: &[u8]) -> Option<usize> {
    let colon = line.iter().position(|&b| !(b.is_ascii_graphic() && b != b':'))?;
    let after_space = line[colon..].iter().position(|b| !matches!(b, b' ' | b'\t'))? + colon;
    (colon > 0 && line[after_space] == b':').then_some(after_space)
}

/// The offset after the line that begins at `from`.
pub(crate) fn line_end(octets: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &octets[from..]).map_or(octets.len(), |i| from + i + 1)
}

/// A field's value as text, unfolded and trimmed.
pub(crate) fn unfolded(value: &[u8]) -> Cow<'_, str> {
    let mut value = match text::guessed(value) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    if value.contains(['\r', '\n']) {
        value.to_mut().retain(|c| c != '\r' && c != '\n');
    }
    value
}

/// A field's value for display: unfolded, encoded words decoded, without control characters.
pub fn decode_header(value: &[u8]) -> String {
    text::single_line(&decode_words(&unfolded(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_unfolds_fields() {
        let section = b"From x\r\nA: 1\r\n 2\r\nno field\r\nB :3\r\n: 4\r\nC:\xe9\n";
        let all: Vec<(String, String)> =
            header_fields(section).map(|field| (field.name.to_owned(), decode_header(field.value))).collect();
        let expected = [("A", "1 2"), ("B", "3"), ("C", "é")];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let unfolded: Vec<_> = header_fields(b"A: b;\r\ncharset=c\r\nD: e\r\ncharset=f\r\n")
            .map(|field| decode_header(field.value))
            .collect();
        assert_eq!(unfolded, ["b;charset=c", "e"]);
    }
}
