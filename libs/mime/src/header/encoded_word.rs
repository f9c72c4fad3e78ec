//! Encoded words (RFC 2047) of bounded length.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::text;
use crate::transfer::{TransferEncoding, hex};

/// Maximum octets of an encoded word (RFC 2047 allows 75).
const ENCODED_WORD_MAX: usize = 1024;
/// Maximum octets of it before the encoded text.
const START_MAX: usize = 128;

/// Decodes the encoded words of a text. Adjacent words of one charset are decoded together, since some
/// software splits characters between two of them.
pub(crate) fn decode_words(text: &str) -> Cow<'_, str> {
    if !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut words: Option<(&str, Vec<u8>)> = None;
    // Text before a word is kept, except for white space between two words.
    let flush = |words: &mut Option<(&str, Vec<u8>)>, out: &mut String| {
        if let Some((charset, octets)) = words.take() {
            out.push_str(&text::decoded(&octets, Some(charset)));
        }
    };
    let mut ends = Ends { text, next: 0 };
    let (mut kept, mut searched) = (0, 0);
    while let Some(start) = text[searched..].find("=?").map(|at| searched + at) {
        let Some((charset, octets, end)) = encoded_word(text, start, &mut ends) else {
            searched = start + 2;
            continue;
        };
        let before = &text[kept..start];
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
        (kept, searched) = (end, end);
    }
    flush(&mut words, &mut out);
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The ends of words, each looked for once, however many words seem to begin before it.
struct Ends<'a> {
    text: &'a str,
    /// The last one that was found, or the length of the text.
    next: usize,
}

impl Ends<'_> {
    /// Where the first `?=` from a place on is, or the length of the text; places must not go back.
    fn after(&mut self, at: usize) -> usize {
        if self.next < at {
            self.next = self.text[at..].find("?=").map_or(self.text.len(), |len| at + len);
        }
        self.next
    }
}

/// Whether each word of the charset starts in its initial state (RFC 1468: ASCII).
fn is_stateful(charset: &str) -> bool {
    charset.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("iso-2022"))
}

/// Charset, octets and end of the encoded word at a place.
fn encoded_word<'a>(text: &'a str, start: usize, ends: &mut Ends<'_>) -> Option<(&'a str, Vec<u8>, usize)> {
    let rest = &text[start..];
    let rest = &rest[..rest.floor_char_boundary(START_MAX)];
    let (charset, after) = rest.strip_prefix("=?")?.split_once('?')?;
    let charset = charset.split('*').next().unwrap_or(charset);
    if charset.len() < 2 || charset.len() > 40 || !charset.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    // A word of an unknown charset is not decoded.
    if !charset.to_ascii_lowercase().starts_with("utf") && charset_decoder(charset.as_bytes()).is_none() {
        return None;
    }
    let (encoding, after) = after.split_once('?')?;
    // Encoded text may start with `=`, so the search for `?=` starts after the `?`.
    let begin = start + rest.len() - after.len();
    let end = ends.after(begin);
    if end == text.len() || end + 2 > start + ENCODED_WORD_MAX {
        return None;
    }
    let encoded = &text[begin..end];
    let octets = match encoding {
        "b" | "B" => TransferEncoding::Base64.decode(encoded.as_bytes()).into_owned(),
        "q" | "Q" => decode_q(encoded.as_bytes()),
        _ => return None,
    };
    Some((charset, octets, end + 2))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_encoded_words() {
        for (encoded, plain) in [
            ("=?utf-8?q?caf=C3=A9?= au =?iso-8859-1?Q?lait_=E0?=", "café au lait à"),
            ("=?utf-8?q?=C3?= =?UTF-8?q?=A9?=", "é"),
            ("=?iso-2022-jp?B?GyRCJU8bKEI=?=\t=?iso-2022-jp?B?GyRCJU0bKEI=?=", "ハネ"),
            ("a =?x-unknown?q?b?= c", "a =?x-unknown?q?b?= c"),
            ("=?utf-8*en?q?a_b?=c", "a bc"),
            ("=?=?utf-8?q?x?=", "=?x"),
            ("100 =? 1", "100 =? 1"),
            ("=?aa?q? =?utf-8?q?x?= =?bb?b?", "=?aa?q? x =?bb?b?"),
        ] {
            assert_eq!(decode_words(encoded), plain);
        }
    }
}
