//! Streaming decoders of content transfer encodings (RFC 2045 6). Damage never stops a decoder: invalid
//! input is skipped (base64) or kept (quoted-printable).

use std::borrow::Cow;

/// Maximum white space at the end of a line; more counts as content.
const LINE_END_SPACE_MAX: usize = 1024;

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferEncoding {
    /// 7bit, 8bit, binary, and unknown encodings.
    Identity,
    /// RFC 2045 6.8.
    Base64,
    /// RFC 2045 6.7.
    QuotedPrintable,
}

impl TransferEncoding {
    /// Parses the value of a `Content-Transfer-Encoding` field. Only its letters and digits count, and what follows the
    /// name does not.
    pub fn parse(value: &str) -> Self {
        let mut name: String = value.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
        name.make_ascii_lowercase();
        if name.starts_with("base64") {
            Self::Base64
        } else if name == "quotedprintable" {
            Self::QuotedPrintable
        } else {
            Self::Identity
        }
    }

    /// The value of a `Content-Transfer-Encoding` field that says the same of a body.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "8bit",
            Self::Base64 => "base64",
            Self::QuotedPrintable => "quoted-printable",
        }
    }

    /// Decodes a whole body.
    pub fn decode(self, body: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Identity {
            return Cow::Borrowed(body);
        }
        let mut decoder = TransferDecoder::new(self);
        let mut decoded = Vec::with_capacity(body.len());
        decoder.push(body, &mut decoded);
        decoder.finish(&mut decoded);
        Cow::Owned(decoded)
    }

    /// The length of the decoded body.
    pub fn decoded_len(self, body: &[u8]) -> usize {
        if self == Self::Identity {
            return body.len();
        }
        let mut decoder = TransferDecoder::new(self);
        let mut decoded = Vec::new();
        let mut len = 0;
        for piece in body.chunks(16 << 10) {
            decoder.push(piece, &mut decoded);
            len += decoded.len();
            decoded.clear();
        }
        decoder.finish(&mut decoded);
        len + decoded.len()
    }
}

/// A streaming decoder: a body that is pushed in pieces decodes to the same as the whole.
#[derive(Debug)]
pub struct TransferDecoder(DecoderState);

#[derive(Debug)]
enum DecoderState {
    Identity,
    Base64 { bits: u32, sextets: u8 },
    QuotedPrintable(QuotedPrintable),
}

/// Input that may still be part of an escape or of the end of a line.
#[derive(Debug, Default)]
struct QuotedPrintable {
    /// `=` and what follows it: nothing, the first of two digits, or white space.
    escape: Vec<u8>,
    /// White space, which is removed if the line ends after it.
    space: Vec<u8>,
}

impl TransferDecoder {
    /// A decoder at the start of a body.
    pub fn new(encoding: TransferEncoding) -> Self {
        Self(match encoding {
            TransferEncoding::Identity => DecoderState::Identity,
            TransferEncoding::Base64 => DecoderState::Base64 { bits: 0, sextets: 0 },
            TransferEncoding::QuotedPrintable => DecoderState::QuotedPrintable(QuotedPrintable::default()),
        })
    }

    /// Decodes the next piece of a body, and appends to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match &mut self.0 {
            DecoderState::Identity => out.extend_from_slice(piece),
            DecoderState::Base64 { bits, sextets } => {
                for &byte in piece {
                    match sextet(byte) {
                        Some(value) => {
                            *bits = *bits << 6 | u32::from(value);
                            *sextets += 1;
                            if *sextets == 4 {
                                out.extend_from_slice(&bits.to_be_bytes()[1..]);
                                (*bits, *sextets) = (0, 0);
                            }
                        }
                        // Padding ends a run; some software concatenates several.
                        None if byte == b'=' => flush_base64(bits, sextets, out),
                        None => {}
                    }
                }
            }
            DecoderState::QuotedPrintable(state) => state.push(piece, out),
        }
    }

    /// Appends what remains at the end of the body.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            DecoderState::Identity => {}
            DecoderState::Base64 { bits, sextets } => flush_base64(bits, sextets, out),
            DecoderState::QuotedPrintable(state) => {
                // A soft line break at the end of the body has no next line.
                if state.escape.len() > 1 && !state.escape[1].is_ascii_whitespace() {
                    out.append(&mut state.escape);
                }
            }
        }
    }
}

impl QuotedPrintable {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut rest = piece;
        while let [first, after @ ..] = rest {
            if !self.escape.is_empty() {
                self.escaped(*first, out);
                rest = after;
                continue;
            }
            // Most of a line is copied, up to the white space at its end.
            let (line, after) = rest.split_at(memchr::memchr2(b'=', b'\n', rest).unwrap_or(rest.len()));
            let is_content = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
            let (content, space) =
                line.split_at(line.iter().rposition(is_content).map_or(0, |last| last + 1));
            if !content.is_empty() {
                out.append(&mut self.space);
                out.extend_from_slice(content);
            }
            let (end, after) = after.split_at(after.len().min(1));
            space.iter().chain(end).for_each(|&byte| self.plain(byte, out));
            rest = after;
        }
    }

    /// Handles the next octet after a `=`.
    fn escaped(&mut self, byte: u8, out: &mut Vec<u8>) {
        let is_space = self.escape.get(1).is_none_or(u8::is_ascii_whitespace);
        match (&self.escape[1..], byte) {
            // A soft line break, maybe with white space that was added in transport.
            (_, b'\n') if is_space => self.escape.clear(),
            ([], b' ' | b'\t' | b'\r') => self.escape.push(byte),
            ([], _) if hex(byte).is_some() => self.escape.push(byte),
            (&[first], _) if hex(first).is_some() && hex(byte).is_some() => {
                let value = hex(first).zip(hex(byte)).map_or(0, |(high, low)| high << 4 | low);
                self.escape.clear();
                out.push(value);
            }
            (rest, b' ' | b'\t' | b'\r') if is_space && rest.len() < LINE_END_SPACE_MAX => {
                self.escape.push(byte);
            }
            // It is not an escape, so it is kept.
            _ => {
                out.append(&mut self.escape);
                self.plain(byte, out);
            }
        }
    }

    fn plain(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b' ' | b'\t' | b'\r' if self.space.len() < LINE_END_SPACE_MAX => self.space.push(byte),
            b'\n' => {
                let line_end: &[u8] = if self.space.last() == Some(&b'\r') { b"\r\n" } else { b"\n" };
                self.space.clear();
                out.extend_from_slice(line_end);
            }
            b'=' => {
                out.append(&mut self.space);
                self.escape.push(byte);
            }
            _ => {
                out.append(&mut self.space);
                out.push(byte);
            }
        }
    }
}

fn flush_base64(bits: &mut u32, sextets: &mut u8, out: &mut Vec<u8>) {
    match *sextets {
        2 => out.extend_from_slice(&(*bits << 12).to_be_bytes()[1..2]),
        3 => out.extend_from_slice(&(*bits << 6).to_be_bytes()[1..3]),
        _ => {}
    }
    (*bits, *sextets) = (0, 0);
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// The value of a hexadecimal digit.
pub(crate) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the body as a whole and in pieces, and asserts equal results.
    fn decoded(encoding: TransferEncoding, body: &str) -> String {
        let whole = encoding.decode(body.as_bytes()).into_owned();
        for step in 1..=body.len() {
            let mut decoder = TransferDecoder::new(encoding);
            let mut pieces = Vec::new();
            body.as_bytes().chunks(step).for_each(|piece| decoder.push(piece, &mut pieces));
            decoder.finish(&mut pieces);
            assert_eq!(pieces, whole, "{step}");
        }
        assert_eq!(encoding.decoded_len(body.as_bytes()), whole.len());
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn decodes_damaged_base64() {
        let base64 = |body| decoded(TransferEncoding::Base64, body);
        assert_eq!(base64("aGVs\r\nbG8=\r\n"), "hello");
        assert_eq!(base64("aGVsbG8"), "hello");
        assert_eq!(base64("aGVs!!bG8*="), "hello");
        assert_eq!(base64("aGVsbG8=aGVsbG8="), "hellohello");
        assert_eq!(base64("a"), "");
        assert_eq!(base64("===="), "");
    }

    #[test]
    fn decodes_damaged_quoted_printable() {
        let qp = |body| decoded(TransferEncoding::QuotedPrintable, body);
        assert_eq!(qp("caf=C3=A9=\r\n!\r\n"), "café!\r\n");
        assert_eq!(qp("a  \r\nb \t\nc=  \r\nd"), "a\r\nb\ncd");
        assert_eq!(qp("1=2, =ZZ =4 =\r"), "1=2, =ZZ =4 ");
        assert_eq!(qp("=3D=3d=="), "===");
        assert_eq!(qp("end="), "end");
    }

    #[test]
    fn parses_encoding_names_leniently() {
        assert_eq!(TransferEncoding::parse(" BASE64 "), TransferEncoding::Base64);
        assert_eq!(TransferEncoding::parse("Quoted-Printable (as ever)"), TransferEncoding::QuotedPrintable);
        for base64 in ["base64;", "\"base64\"", "base64, ", ": base64", "base64 charset=utf-8"] {
            assert_eq!(TransferEncoding::parse(base64), TransferEncoding::Base64, "{base64}");
        }
        for printable in ["quoted-printable;", "quoted printable", "'quoted-printable'", "quoted_printable:x"]
        {
            assert_eq!(TransferEncoding::parse(printable), TransferEncoding::QuotedPrintable, "{printable}");
        }
        assert_eq!(TransferEncoding::parse("8bit"), TransferEncoding::Identity);
        assert_eq!(TransferEncoding::parse(""), TransferEncoding::Identity);
    }
}
