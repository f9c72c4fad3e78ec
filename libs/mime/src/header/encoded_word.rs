//! Encoded words (RFC 2047) of bounded length.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::text;
use crate::transfer::{TransferEncoding, hex};

/// Maximum octets of an encoded word (RFC 2047 allows 75).
const ENCODED_WORD_MAX: usize = 1024;
/// Maximum octets of it before the encoded text.
const START_MAX: usize = 128;

/// Decodes the encoded words of a text. The encoded texts of adjacent words of one charset are joined before they are
/// decoded, since some software cuts a text into words after it has encoded it. Padding ends a run of base64.
pub(crate) fn decode_words(text: &str) -> Cow<'_, str> {
    if !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut run: Option<Run<'_>> = None;
    let mut ends = Ends { text, next: 0 };
    let (mut kept, mut searched) = (0, 0);
    while let Some(start) = text[searched..].find("=?").map(|at| searched + at) {
        let Some((word, end)) = encoded_word(text, start, &mut ends) else {
            searched = start + 2;
            continue;
        };
        // Text before a word is kept, except for white space between two words.
        let before = &text[kept..start];
        let is_adjacent = run.is_some() && before.trim().is_empty();
        match run.as_mut().filter(|run| is_adjacent && run.goes_on_with(&word)) {
            Some(run) => run.push(&word),
            None => {
                out.extend(run.take().map(Run::decoded));
                out.push_str(if is_adjacent { "" } else { before });
                run = Some(Run::of(&word));
            }
        }
        (kept, searched) = (end, end);
    }
    out.extend(run.map(Run::decoded));
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// An encoded word.
struct Word<'a> {
    charset: &'a str,
    encoding: WordEncoding,
    encoded: &'a str,
}

/// The encoding of a word (RFC 2047 4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordEncoding {
    B,
    Q,
}

impl WordEncoding {
    fn decode(self, encoded: &str) -> Vec<u8> {
        match self {
            Self::B => TransferEncoding::Base64.decode(encoded.as_bytes()).into_owned(),
            Self::Q => decode_q(encoded.as_bytes()),
        }
    }
}

/// Adjacent words of one charset.
struct Run<'a> {
    charset: &'a str,
    /// Decoded, of words before the last change of the encoding, and of what stands before the last character outside ASCII.
    octets: Vec<u8>,
    /// The text before these octets.
    text: String,
    encoding: WordEncoding,
    /// The joined encoded texts since then.
    encoded: String,
}

impl<'a> Run<'a> {
    fn of(word: &Word<'a>) -> Self {
        let encoded = word.encoded.to_owned();
        Self {
            charset: word.charset,
            octets: Vec::new(),
            text: String::new(),
            encoding: word.encoding,
            encoded,
        }
    }

    /// Whether the run and a word are one text. A word of a stateful charset begins in its initial state (RFC 1468:
    /// ASCII), unless the base64 was cut before it.
    fn goes_on_with(&self, word: &Word<'_>) -> bool {
        let is_stateful =
            || word.charset.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("iso-2022"));
        self.charset.eq_ignore_ascii_case(word.charset) && (self.is_cut() || !is_stateful())
    }

    /// Whether the encoded text ends within four characters of base64.
    fn is_cut(&self) -> bool {
        self.encoding == WordEncoding::B
            && !self.encoded.len().is_multiple_of(4)
            && !self.encoded.ends_with('=')
    }

    fn push(&mut self, word: &Word<'_>) {
        if self.encoding != word.encoding {
            self.decode();
            self.encoding = word.encoding;
        }
        self.encoded.push_str(word.encoded);
    }

    /// Decodes the encoded text. A character outside ASCII in `Q`, which RFC 2047 forbids, is decoded already.
    fn decode(&mut self) {
        let mut encoded = &*std::mem::take(&mut self.encoded);
        if self.encoding == WordEncoding::Q {
            while let Some((at, character)) = encoded.char_indices().find(|(_, c)| !c.is_ascii()) {
                self.octets.extend(self.encoding.decode(&encoded[..at]));
                self.end_octets();
                self.text.push(character);
                encoded = &encoded[at + character.len_utf8()..];
            }
        }
        self.octets.extend(self.encoding.decode(encoded));
    }

    fn end_octets(&mut self) {
        self.text.push_str(&text::decoded(&std::mem::take(&mut self.octets), Some(self.charset)));
    }

    fn decoded(mut self) -> String {
        self.decode();
        self.end_octets();
        self.text
    }
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

/// The encoded word at a place, and its end.
fn encoded_word<'a>(text: &'a str, start: usize, ends: &mut Ends<'_>) -> Option<(Word<'a>, usize)> {
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
    let encoding = match encoding {
        "b" | "B" => WordEncoding::B,
        "q" | "Q" => WordEncoding::Q,
        _ => return None,
    };
    Some((Word { charset, encoding, encoded: &text[begin..end] }, end + 2))
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
            ("=?iso-8859-1?Q?die_Frösche_=E0?=", "die Frösche à"),
            ("=?utf-8?q?=C3?= =?UTF-8?q?=A9?=", "é"),
            ("=?iso-2022-jp?B?GyRCJU8bKEI=?=\t=?iso-2022-jp?B?GyRCJU0bKEI=?=", "ハネ"),
            ("a =?x-unknown?q?b?= c", "a =?x-unknown?q?b?= c"),
            ("=?utf-8*en?q?a_b?=c", "a bc"),
            ("=?UTF-8?B?QmVzdMOkd?= =?utf-8?B?GlnZW4gU2llIE?=\t=?UTF-8?b?locmU=?=", "Bestätigen Sie Ihre"),
            ("=?utf-8?b?YQ==?= =?utf-8?b?Yg==?=", "ab"),
            ("=?utf-8?b?w6?= =?utf-8?b?k=?= =?utf-8?q?=C3?= =?utf-8?b?qQ==?=", "éé"),
            ("=?utf-8?q?=C?= =?utf-8?q?3=A9?=", "é"),
            ("=?iso-2022-jp?B?GyRCJ?= =?iso-2022-jp?B?U8bKEI=?=", "ハ"),
            ("=?utf-8?b?YWI?= x =?utf-8?b?YWI?=", "ab x ab"),
            ("=?utf-8?q?caf=E9?=", "café"),
            ("=?=?utf-8?q?x?=", "=?x"),
            ("100 =? 1", "100 =? 1"),
            ("=?aa?q? =?utf-8?q?x?= =?bb?b?", "=?aa?q? x =?bb?b?"),
        ] {
            assert_eq!(decode_words(encoded), plain);
        }
    }
}
