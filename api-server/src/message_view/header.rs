//! Header fields: split, unfolded, decoded (RFC 2047), and addresses as text.
//!
//! All of it is linear in the section's length: encoded words are looked for within a bound.

use mail_parser::ContentType;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::parsers::MessageStream;

use super::text;
use super::transfer::{Encoding, hex};

/// Octets within which an encoded word ends (RFC 2047 allows 75).
const ENCODED_WORD_MAX: usize = 1024;
/// Octets of a field with parameters that are looked at.
const PARAMETERS_MAX: usize = 4096;

/// A header field as it stands.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    /// With its folding.
    pub(super) value: &'a [u8],
}

/// The fields of a header section, in order; what is no field is left out.
pub(super) fn fields(section: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = section;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let mut end = line_end(rest, 0);
            while matches!(rest.get(end), Some(b' ' | b'\t')) {
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

/// Where the name of a field ends, at its colon; `None` where a line begins no field.
pub(super) fn field_name_end(line: &[u8]) -> Option<usize> {
    let colon = line.iter().position(|&b| !(b.is_ascii_graphic() && b != b':'))?;
    let after_space = line[colon..].iter().position(|b| !matches!(b, b' ' | b'\t'))? + colon;
    (colon > 0 && line[after_space] == b':').then_some(after_space)
}

/// Offset behind the line that begins at `from`.
pub(super) fn line_end(octets: &[u8], from: usize) -> usize {
    octets[from..].iter().position(|&b| b == b'\n').map_or(octets.len(), |i| from + i + 1)
}

/// A field's value on one line, octets as text.
pub(super) fn unfolded(value: &[u8]) -> String {
    let mut value = text::utf8_or_latin(value);
    value.retain(|c| c != '\r' && c != '\n');
    value.trim().to_owned()
}

/// A field's value to show: unfolded, encoded words decoded, no control characters.
pub(super) fn shown(value: &[u8]) -> String {
    text::line(&decode_words(&unfolded(value)))
}

/// A field with parameters (`Content-Type`, `Content-Disposition`; RFC 2231).
pub(super) fn parameters(value: &[u8]) -> Option<ContentType<'static>> {
    let mut value = unfolded(value);
    value.truncate(value.floor_char_boundary(PARAMETERS_MAX));
    value.push('\n');
    let parsed = MessageStream::new(value.as_bytes()).parse_content_type().into_owned();
    parsed.into_content_type()
}

/// Decodes the encoded words of a text (RFC 2047). Neighbours in one charset are decoded
/// together, since some software splits characters over two of them.
pub(super) fn decode_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words: Option<(&str, Vec<u8>)> = None;
    let mut rest = text;
    // The text before a word is kept, except for the white space between two words.
    let flush = |words: &mut Option<(&str, Vec<u8>)>, out: &mut String| {
        if let Some((charset, octets)) = words.take() {
            out.push_str(&text::decoded(&octets, Some(charset)));
        }
    };
    let mut searched = 0;
    while let Some(found) = rest[searched..].find("=?").map(|i| i + searched) {
        let Some((charset, octets, len)) = encoded_word(&rest[found..]) else {
            searched = found + 2;
            continue;
        };
        let before = &rest[..found];
        if words.is_none() || !before.trim().is_empty() {
            flush(&mut words, &mut out);
            out.push_str(before);
        }
        match &mut words {
            Some((open, collected)) if open.eq_ignore_ascii_case(charset) && !is_stateful(charset) => {
                collected.extend(octets);
            }
            _ => {
                flush(&mut words, &mut out);
                words = Some((charset, octets));
            }
        }
        rest = &rest[found + len..];
        searched = 0;
    }
    flush(&mut words, &mut out);
    out.push_str(rest);
    out
}

/// Whether each word of a charset begins anew (RFC 1468: in ASCII).
fn is_stateful(charset: &str) -> bool {
    charset.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("iso-2022"))
}

/// Charset, octets and length of the encoded word that a text begins with.
fn encoded_word(text: &str) -> Option<(&str, Vec<u8>, usize)> {
    let window = &text[..text.floor_char_boundary(ENCODED_WORD_MAX)];
    let (charset, after) = window.strip_prefix("=?")?.split_once('?')?;
    let charset = charset.split('*').next().unwrap_or(charset);
    if charset.len() < 2 || charset.len() > 40 || !charset.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let (encoding, after) = after.split_once('?')?;
    // An encoded text may begin with `=`, which is not the end of the word.
    let end = after.find("?=")?;
    let encoded = &after[..end];
    let octets = match encoding {
        "b" | "B" => Encoding::Base64.decode(encoded.as_bytes()),
        "q" | "Q" => decode_q(encoded.as_bytes()),
        _ => return None,
    };
    // What no charset explains stays as it stands.
    if !charset.to_ascii_lowercase().starts_with("utf") && charset_decoder(charset.as_bytes()).is_none() {
        return None;
    }
    let len = window.len() - after.len() + end + 2;
    Some((charset, octets, len))
}

/// RFC 2047 4.2.
fn decode_q(encoded: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(encoded.len());
    let mut i = 0;
    while i < encoded.len() {
        let digits = encoded.get(i + 1).zip(encoded.get(i + 2));
        match (encoded[i], digits.and_then(|(high, low)| Some(hex(*high)? << 4 | hex(*low)?))) {
            (b'=', Some(octet)) => {
                octets.push(octet);
                i += 2;
            }
            (b'_', _) => octets.push(b' '),
            (other, _) => octets.push(other),
        }
        i += 1;
    }
    octets
}

/// The addresses of a field such as `To`, each as `name <address>` or `address`; groups are
/// taken apart and comments left out.
pub(super) fn addresses(value: &[u8]) -> Vec<String> {
    let value = unfolded(value);
    let mut list = Vec::new();
    let mut one = Address::default();
    let (mut place, mut quoted, mut comments) = (Place::Name, false, 0_u32);
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match (place, c) {
            (_, '\\') if quoted || comments > 0 => {
                let escaped = characters.next().filter(|_| comments == 0);
                one.name.extend(escaped);
            }
            (Place::Angle, '>') => place = Place::Behind,
            (Place::Angle, _) => one.address.push(c),
            (_, '"') if comments == 0 => quoted = !quoted,
            (Place::Name, _) if quoted => one.name.push(c),
            (Place::Behind, _) if quoted => {}
            (_, '(') => comments += 1,
            (_, ')') if comments > 0 => comments -= 1,
            _ if comments > 0 => {}
            (Place::Name, '<') => place = Place::Angle,
            (_, ',' | ';') => {
                list.extend(std::mem::take(&mut one).shown());
                place = Place::Name;
            }
            // The name of a group.
            (_, ':') => one = Address::default(),
            (Place::Name, _) => one.name.push(c),
            (Place::Behind, _) => {}
        }
    }
    list.extend(one.shown());
    list
}

/// Where in an address a character stands.
#[derive(Clone, Copy)]
enum Place {
    /// The display name, or all of an address without angle brackets.
    Name,
    Angle,
    Behind,
}

#[derive(Default)]
struct Address {
    name: String,
    address: String,
}

impl Address {
    fn shown(self) -> Option<String> {
        let name = text::line(&decode_words(self.name.trim()));
        let address = text::line(self.address.trim());
        match (name.is_empty(), address.is_empty()) {
            (true, true) => None,
            (true, false) => Some(address),
            (false, true) => Some(name),
            (false, false) => Some(format!("{name} <{address}>")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn fields_are_split_and_unfolded() {
        let section = b"From x\r\nA: 1\r\n 2\r\nno field\r\nB :3\r\n: 4\r\nC:\xe9\n";
        let all: Vec<(String, String)> =
            fields(section).map(|field| (field.name.to_owned(), shown(field.value))).collect();
        let expected = [("A", "1 2"), ("B", "3"), ("C", "é")];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn encoded_words_are_decoded() {
        for (encoded, plain) in [
            ("=?utf-8?q?caf=C3=A9?= au =?iso-8859-1?Q?lait_=E0?=", "café au lait à"),
            ("=?utf-8?q?=C3?= =?UTF-8?q?=A9?=", "é"),
            ("=?iso-2022-jp?B?GyRCJU8bKEI=?=\t=?iso-2022-jp?B?GyRCJU0bKEI=?=", "ハネ"),
            ("a =?x-unknown?q?b?= c", "a =?x-unknown?q?b?= c"),
            ("=?utf-8*en?q?a_b?=c", "a bc"),
            ("=?=?utf-8?q?x?=", "=?x"),
            ("100 =? 1", "100 =? 1"),
        ] {
            assert_eq!(decode_words(encoded), plain);
        }
    }

    #[test]
    fn floods_take_no_time() {
        for flood in ["=?utf-8?q?x", "=?", "=?utf-8?q?a?= ", "=?utf-8?b?", "<", "(", "\"", "a<b>,"] {
            let value = flood.repeat((256 << 10) / flood.len());
            let began = Instant::now();
            decode_words(&value);
            addresses(value.as_bytes());
            parameters(value.as_bytes());
            assert!(began.elapsed() < Duration::from_secs(5), "{flood}");
        }
    }

    #[test]
    fn addresses_are_shown_with_their_names() {
        for (value, expected) in [
            ("a@b.example", &["a@b.example"][..]),
            ("\"Doe, J.\" <j@b.example>, <k@b.example>", &["Doe, J. <j@b.example>", "k@b.example"]),
            ("=?utf-8?q?J=C3=B6rg?= <j@b.example> (home)", &["Jörg <j@b.example>"]),
            ("team: a@b.example, b@b.example; c@b.example", &["a@b.example", "b@b.example", "c@b.example"]),
            ("undisclosed-recipients:;", &[]),
            ("(only, a comment)", &[]),
            ("", &[]),
        ] {
            assert_eq!(addresses(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn parameters_follow_rfc_2231() {
        let file_name = |value: &str| {
            let parsed = parameters(value.as_bytes()).unwrap();
            parsed.attribute("filename").map(str::to_owned)
        };
        assert_eq!(file_name("attachment; filename*=UTF-8''na%C3%AFve.txt"), Some("naïve.txt".into()));
        assert_eq!(
            file_name("attachment; filename*0=\"a\";\r\n filename*1=\"b.txt\""),
            Some("ab.txt".into())
        );
        assert_eq!(file_name("attachment; filename=\"x y.txt\""), Some("x y.txt".into()));
    }
}
