//! What lists show of a mail: From, Subject and the first characters of the body. Taken once,
//! when the mail is accepted; everything else is parsed when it is read.

use std::borrow::Cow;
use std::sync::LazyLock;

use mail_parser::decoders::html::html_to_text;
use mail_parser::{Address, HeaderName, HeaderValue, Message, MessageParser, PartType};

/// Most characters of a stored Subject.
const SUBJECT_MAX: usize = 1_000;
/// Most characters of a stored From header.
const FROM_MAX: usize = 512;
/// Characters of a preview.
const PREVIEW_MAX: usize = 100;
/// Octets of a body that a preview is looked for in.
const PREVIEW_SOURCE_MAX: usize = 64 << 10;
/// Octets of a mail of many parts that are looked at: its structure is not worth more here.
const MANY_PARTS_PREFIX: usize = 256 << 10;
/// Lines that look like a boundary from which on a mail has many parts.
const MANY_PARTS: usize = 2_000;

static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
        .header_address(HeaderName::From)
        .header_text(HeaderName::Subject)
        .default_header_ignore()
});

/// The summary fields of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The From header as text, RFC 2047 decoded, at most 512 characters.
    pub from_text: String,
    /// The first address in it, or "".
    pub from_email: String,
    /// The Subject, decoded, at most 1,000 characters.
    pub subject: String,
    /// The first 100 characters of the text (else of the HTML's text), white space folded.
    pub preview: String,
}

impl Summary {
    /// The summary of a mail's data. Text that can't be decoded is left out, never an error.
    pub fn of(data: &[u8]) -> Self {
        let data = if has_many_parts(data) { &data[..data.len().min(MANY_PARTS_PREFIX)] } else { data };
        let Some(message) = PARSER.parse(data) else {
            return Self::default();
        };
        let originators: Vec<&Address<'_>> =
            message.header_values(HeaderName::From).filter_map(HeaderValue::as_address).collect();
        let from_email = originators
            .iter()
            .flat_map(|address| address.iter())
            .find_map(|addr| addr.address.as_deref())
            .unwrap_or_default();
        Self {
            from_text: shown(&from_text(&originators), FROM_MAX),
            from_email: shown(from_email, FROM_MAX),
            subject: shown(message.subject().unwrap_or_default(), SUBJECT_MAX),
            preview: preview(&message),
        }
    }
}

/// `Name <address>, …`, as a mail client shows it.
fn from_text(originators: &[&Address<'_>]) -> String {
    let mut text = String::new();
    for addr in originators.iter().flat_map(|address| address.iter()) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        match (addr.name.as_deref(), addr.address.as_deref()) {
            (Some(name), Some(address)) => text.extend([name, " <", address, ">"]),
            (Some(name), None) => text.push_str(name),
            (None, Some(address)) => text.push_str(address),
            (None, None) => {}
        }
        if text.len() > FROM_MAX * 4 {
            break;
        }
    }
    text
}

fn preview(message: &Message<'_>) -> String {
    let body = message.text_body.first().and_then(|id| message.part(*id)).map(|part| &part.body);
    let text = match body {
        Some(PartType::Text(text)) => Cow::Borrowed(prefix(text)),
        Some(PartType::Html(html)) => Cow::Owned(html_to_text(prefix(html))),
        _ => return String::new(),
    };
    let mut preview = String::with_capacity(PREVIEW_MAX);
    let mut characters = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(characters > 0);
        for c in std::iter::repeat_n(' ', gap).chain(word.chars().filter_map(visible)) {
            if characters == PREVIEW_MAX {
                return preview;
            }
            preview.push(c);
            characters += 1;
        }
    }
    preview
}

fn prefix(text: &str) -> &str {
    &text[..text.floor_char_boundary(PREVIEW_SOURCE_MAX)]
}

/// A header's text for a column: cut, without control characters.
fn shown(text: &str, max: usize) -> String {
    text.chars().filter_map(visible).take(max).collect()
}

/// NUL becomes U+FFFD, other control characters (and what turns text around) go.
fn visible(c: char) -> Option<char> {
    match c {
        '\0' => Some(char::REPLACEMENT_CHARACTER),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

fn has_many_parts(data: &[u8]) -> bool {
    data.len() > MANY_PARTS_PREFIX
        && data.windows(3).filter(|w| w == b"\n--").take(MANY_PARTS).count() == MANY_PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_decoded_and_bodies_folded() {
        let summary = Summary::of(
            b"From: =?utf-8?q?J=C3=B6rg?= <joerg@a.example>, b@b.example\r\n\
              Subject: =?iso-8859-1?q?caf=E9?=\r\n\r\n  one\r\n two\tthree  \r\n",
        );
        assert_eq!(summary.from_text, "Jörg <joerg@a.example>, b@b.example");
        assert_eq!(summary.from_email, "joerg@a.example");
        assert_eq!(summary.subject, "café");
        assert_eq!(summary.preview, "one two three");
    }

    #[test]
    fn html_only_gives_its_text() {
        let summary = Summary::of(b"Content-Type: text/html\r\n\r\n<style>a{}</style><p>Code <b>123</b></p>");
        assert_eq!(summary.preview, "Code 123");
    }

    #[test]
    fn nothing_is_no_error() {
        assert_eq!(Summary::of(b""), Summary::default());
        assert_eq!(Summary::of(b"\0"), Summary::default());
    }

    #[test]
    fn fields_are_cut_and_cleaned() {
        let data = format!("Subject: a\0b\x07{}\r\n\r\n{}", "x".repeat(2_000), "y".repeat(300));
        let summary = Summary::of(data.as_bytes());
        assert_eq!(summary.subject.chars().count(), SUBJECT_MAX);
        assert!(summary.subject.starts_with("a\u{fffd}bx"));
        assert_eq!(summary.preview.len(), PREVIEW_MAX);
    }
}
