//! Charsets, and the removal of characters that text must not contain.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::transfer::TransferEncoding;

/// Decodes octets of a declared charset. If the charset is unknown, valid UTF-8 is decoded as such, and
/// all else as windows-1252, so that an invalid byte never hides the rest.
pub(crate) fn decoded<'a>(octets: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    let declared = charset.map(str::trim).filter(|name| {
        // Software often declares these and sends something else.
        !["us-ascii", "ascii", "utf-8", "utf8", "unknown-8bit"]
            .iter()
            .any(|usual| name.eq_ignore_ascii_case(usual))
    });
    if declared.is_some_and(|name| name.eq_ignore_ascii_case("utf-7")) {
        return Cow::Owned(utf_7(octets));
    }
    if let Some(decode) = declared.and_then(|name| charset_decoder(name.as_bytes())) {
        return Cow::Owned(decode(octets));
    }
    if charset.is_some_and(|name| name.trim().to_ascii_lowercase().starts_with("utf")) {
        return String::from_utf8_lossy(octets);
    }
    utf8_or_latin(octets)
}

/// The same without a copy if the octets are UTF-8.
pub(crate) fn decoded_owned(octets: Vec<u8>, charset: Option<&str>) -> String {
    if let Cow::Owned(text) = decoded(&octets, charset) {
        return text;
    }
    // A borrowed text consists of all octets, unchanged.
    String::from_utf8(octets).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Decodes valid UTF-8 as such, and all else as windows-1252.
pub(crate) fn utf8_or_latin(octets: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(octets) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => match charset_decoder(b"windows-1252") {
            Some(decode) => Cow::Owned(decode(octets)),
            None => String::from_utf8_lossy(octets),
        },
    }
}

/// The octets without an incomplete UTF-8 character at their end.
pub(crate) fn whole_characters(octets: &[u8]) -> &[u8] {
    match std::str::from_utf8(octets) {
        Err(error) if error.error_len().is_none() => &octets[..error.valid_up_to()],
        _ => octets,
    }
}

/// Decodes UTF-7 (RFC 2152). The decoder of `mail_parser` loses the character after a shifted
/// sequence.
fn utf_7(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    let mut rest = octets;
    while let Some(plus) = rest.iter().position(|&b| b == b'+') {
        text.push_str(&String::from_utf8_lossy(&rest[..plus]));
        let shifted = &rest[plus + 1..];
        let len = shifted.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')));
        let (encoded, after) = shifted.split_at(len.unwrap_or(shifted.len()));
        if encoded.is_empty() {
            text.push('+');
        }
        let octets = TransferEncoding::Base64.decode(encoded);
        let units = octets.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        rest = after.strip_prefix(b"-").unwrap_or(after);
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

/// The text of a body without byte order mark, and with U+FFFD for U+0000, which databases and C
/// programs reject.
pub(crate) fn body(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Cow::Owned(mut text) => {
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            Cow::Owned(text)
        }
    };
    if text.contains('\0') {
        text = Cow::Owned(text.replace('\0', "\u{fffd}"));
    }
    text
}

/// A line of text for display: see [`printable`]; tabs become spaces.
pub fn single_line(text: &str) -> String {
    text.chars().filter_map(|c| if c == '\t' { Some(' ') } else { printable(c) }).collect()
}

/// A character for display: U+FFFD for U+0000; `None` for other control characters and for those that
/// change the direction of text.
pub fn printable(c: char) -> Option<char> {
    match c {
        '\0' => Some(char::REPLACEMENT_CHARACTER),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_charsets() {
        assert_eq!(decoded(b"\x1b$B%O%m!<\x1b(B", Some("ISO-2022-JP")), "ハロー");
        assert_eq!(decoded(b"\x80 caf\xe9", Some("windows-1252")), "€ café");
        assert_eq!(decoded(b"\xd0\xcf", Some("koi8-r")), "по");
        assert_eq!(decoded("ж".as_bytes(), Some("us-ascii")), "ж");
        assert_eq!(decoded(b"caf\xe9", None), "café");
        assert_eq!(decoded(b"caf\xe9", Some("x-no-such")), "café");
        assert_eq!(decoded(b"caf\xe9", Some("UTF-8")), "caf\u{fffd}");
        assert_eq!(decoded(b"Mom -+Jjo--! 1 +- 1 A+ImIDkQ.", Some("UTF-7")), "Mom -☺-! 1 + 1 A≢Α.");
        assert_eq!(decoded(b"h\0i\0", Some("utf-16le")), "hi");
    }

    #[test]
    fn removes_control_characters_and_replaces_nul() {
        assert_eq!(single_line("a\0b\x07c\u{202e}d\te\r\n"), "a\u{fffd}bcd e");
        assert_eq!(body("\u{feff}a\0\x07".into()), "a\u{fffd}\x07");
    }
}
