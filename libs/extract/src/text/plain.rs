//! The text body: what mail systems broke is joined, and quotations are marked.

use super::url_scan::is_of_url;
use super::{Shown, Text, chars};

/// A line at least so long may have been broken by the sender's system.
const BROKEN_FROM: usize = 60;

/// Reads a text body.
pub(crate) fn read(text: &str) -> Shown {
    let text = chars::normalized(&text.replace("\r\n", "\n").replace('\r', "\n"));
    let text = if has_quoted_printable(&text) { decode_quoted_printable(&text) } else { text };
    let mut shown = Shown::default();
    let mut line_start = 0;
    let mut url: Option<OpenUrl> = None;
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(open) = url.filter(|open| goes_on(&shown.text, line_start, *open, line)) {
            let from = shown.text.len();
            shown.text.push_str(line.trim_start());
            url = open.after(&shown.text, line_start, from);
            continue;
        }
        if !shown.text.is_empty() {
            shown.text.push_str("\n");
        }
        line_start = shown.text.len();
        shown.text.push_str(line);
        if line.trim_start().starts_with('>') {
            shown.quoted.push(line_start..shown.text.len() + 1);
        }
        url = OpenUrl::at_end(&shown.text, line_start, line_start);
    }
    shown.text = unwrapped(shown.text.whole()).into();
    shown
}

/// Octets of an address that may go on in the next line.
const OPEN_URL_MAX: usize = 4_096;
/// Octets before it in which its `<` may be.
const BRACKET_MAX: usize = 256;

/// The address that a text ends within. It is kept while lines are joined to it, so that none is looked at again.
#[derive(Debug, Clone, Copy)]
struct OpenUrl {
    /// Where its `://` is.
    colon: usize,
    /// Whether a `<` before it in its line is not closed.
    is_in_brackets: bool,
}

impl OpenUrl {
    /// The address that the last line ends within, if it begins at `from` or later.
    fn at_end(text: &Text, line_start: usize, from: usize) -> Option<Self> {
        let piece = &text[from..text.len()];
        let word = &piece[piece.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let url = &word[word.find("://")?..];
        let colon = text.len() - url.len();
        let is_open = url.len() < OPEN_URL_MAX && url.chars().all(is_of_url);
        let before = is_open.then(|| text.before(colon, BRACKET_MAX.min(colon - line_start)))?;
        let is_in_brackets = before.rfind('<').is_some_and(|open| !before[open..].contains('>'));
        Some(Self { colon, is_in_brackets })
    }

    /// The address that the text ends within after a piece, which begins at `from`, was joined to it.
    fn after(self, text: &Text, line_start: usize, from: usize) -> Option<Self> {
        let piece = &text[from..text.len()];
        if piece.contains(char::is_whitespace) {
            return Self::at_end(text, line_start, from);
        }
        (text.len() - self.colon < OPEN_URL_MAX && piece.chars().all(is_of_url)).then_some(self)
    }
}

/// Widths at which mail systems wrap the lines of a text.
const WRAPPED_AT: std::ops::RangeInclusive<usize> = 60..=80;

/// The text with its wrapped lines joined, each octet where it was. A line was wrapped if the first word of the next
/// would not have fitted on it; what begins a list, a quotation or an address is no continuation.
fn unwrapped(text: &str) -> String {
    let width = |line: &str| line.chars().count();
    let lines: Vec<&str> = text.split('\n').collect();
    let widest = lines.iter().filter(|line| !line.contains("://")).map(|line| width(line));
    let Some(limit) = widest.filter(|width| *width <= *WRAPPED_AT.end()).max() else {
        return text.to_owned();
    };
    let limit = limit.clamp(*WRAPPED_AT.start(), 72);
    let mut joined = String::with_capacity(text.len());
    for (index, line) in lines.iter().enumerate() {
        joined.push_str(line);
        if let Some(next) = lines.get(index + 1) {
            let first = next.split(' ').next().unwrap_or_default();
            let is_full = WRAPPED_AT.contains(&(width(line) + 15)) || WRAPPED_AT.contains(&width(line));
            let is_wrapped = is_full
                && width(line) + 1 + width(first) > limit
                && begins_continuation(next)
                && !line.starts_with(['>', '-', '=', '_'])
                && !line.ends_with([':', '：'])
                && !line.contains("://");
            joined.push(if is_wrapped { ' ' } else { '\n' });
        }
    }
    joined
}

fn begins_continuation(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '(' | '"' | '„' | '“' | '«'))
        && !line.contains("://")
}

/// Whether a line goes on with the address that the text ends with: either it closes `<…>`, or the line before was long
/// and this one is a piece of an address.
fn goes_on(text: &Text, line_start: usize, url: OpenUrl, line: &str) -> bool {
    let line = line.trim_start();
    let piece_end = line.find(|c| !is_of_url(c)).unwrap_or(line.len());
    if url.is_in_brackets && piece_end > 0 && line[piece_end..].starts_with('>') {
        return true;
    }
    let is_piece = !line.is_empty()
        && piece_end == line.len()
        && !line.contains("://")
        && (line.contains(['=', '&', '%', '/', '_', '?']) || line.chars().any(|c| c.is_ascii_digit()))
        && !line.starts_with(['(', '[', '*', '-', '#']);
    let is_long = text.len() - line_start >= BROKEN_FROM;
    is_piece
        && (is_long || url.is_in_brackets || text.before(text.len(), 1).ends_with(['=', '&', '?', '%', '/']))
        && !looks_like_code(line)
}

/// A short line of digits or capitals is more likely a code than a piece of an address.
fn looks_like_code(line: &str) -> bool {
    line.len() <= 9
        && line.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

/// Whether the text still has the transfer encoding `quoted-printable`: each `=` is one of its escapes, and there is
/// more of it than an address with `=3D` in a token could have.
fn has_quoted_printable(text: &str) -> bool {
    let soft_breaks =
        text.lines().filter(|line| (40..=76).contains(&line.len()) && line.ends_with('=')).count();
    let full = text.lines().any(|line| (70..=76).contains(&line.len()) && line.ends_with('='));
    let is_hex =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte));
    let bytes = text.as_bytes();
    let is_escape = |(at, _): (usize, &str)| {
        bytes.get(at + 1).is_none_or(|byte| *byte == b'\n')
            || (is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)))
    };
    let escapes = text.matches("=3D").count();
    let are_escapes = text.match_indices('=').all(is_escape);
    (are_escapes && (escapes >= 2 || (escapes == 1 && (soft_breaks >= 1 || text.contains("=20")))))
        || soft_breaks >= 2
        || (soft_breaks == 1 && text.contains("=20"))
        || full
}

fn decode_quoted_printable(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'=' {
            octets.push(*first);
            continue;
        }
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match tail {
            [b'\n', after @ ..] => rest = after,
            [high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) if is_escaped(high * 16 + low) => {
                    octets.push(high * 16 + low);
                    rest = after;
                }
                _ => octets.push(b'='),
            },
            _ => octets.push(b'='),
        }
    }
    chars::normalized(&String::from_utf8_lossy(&octets))
}

/// Octets that are escaped: `=`, white space, and what is not ASCII. Others are more likely written so.
fn is_escaped(octet: u8) -> bool {
    matches!(octet, b'=' | b' ' | b'\t' | b'\r' | b'\n' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        read(text).text.into_string()
    }

    #[test]
    fn broken_addresses_are_joined() {
        let long = format!("https://a.example/{}", "x".repeat(60));
        assert_eq!(shown(&format!("Go:\n{long}\n?token=1\nBye")), format!("Go:\n{long}?token=1\nBye"));
        assert_eq!(shown("<https://a.example/v?t=\nabc>"), "<https://a.example/v?t=abc>");
        assert_eq!(shown("https://a.example/v\n482913"), "https://a.example/v\n482913");
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let wrapped =
            "The code that we have sent to the telephone whose number ends in the digits\n2709.\n\nBye";
        assert_eq!(shown(wrapped), wrapped.replacen('\n', " ", 1));
        let code = "Please enter the following code in the next hour to confirm your address:\n482913";
        assert_eq!(shown(code), code);
        assert_eq!(shown("https://a.example/?t=3d5fcd72538345"), "https://a.example/?t=3d5fcd72538345");
    }

    #[test]
    fn leftovers_of_quoted_printable_are_decoded() {
        assert_eq!(shown("https://a.example/v?t=3Dab=\ncd\nEnd=20"), "https://a.example/v?t=abcd\nEnd");
    }

    #[test]
    fn quotations_are_marked() {
        let shown = read("new\n> old 1\n> old 2\nnew");
        assert!(!shown.is_quoted(0) && shown.is_quoted(6) && shown.is_quoted(14));
        assert!(!shown.is_quoted(shown.text.len() - 1));
    }
}
