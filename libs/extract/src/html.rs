//! HTML as a reader sees it.

mod element;
mod reader;
mod sheet;
mod style;
mod writer;

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use self::reader::DocumentReader;
use self::sheet::{Sheet, SheetReader};
use crate::bounds::{self, ATTRIBUTES_MAX};
use crate::text::Shown;

pub(crate) use writer::Characters;

/// The text of an HTML document as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownText {
    /// Blocks as lines, items of lists with `- `, cells of a table apart by tabs; of links their text only, of
    /// images nothing.
    pub text: String,
    /// Whether hidden text was left out: what is not displayed, has no size or opacity, stands outside the page, or
    /// is of the colour behind it.
    pub left_out_hidden: bool,
    /// Whether the document shows more than fits into `limit`, or is larger than 1 MiB.
    pub cut: bool,
}

/// The text of an HTML document as it is shown, up to `limit` octets. Of the document 1 MiB is read.
///
/// Bounded on any input, and without recursion; characters that are not seen (zero width, direction) are kept.
#[must_use]
pub fn shown_text(html: &str, limit: usize) -> ShownText {
    let shown = read(html, limit, Characters::AsWritten);
    ShownText { text: shown.text.into_string(), left_out_hidden: shown.left_out_hidden, cut: shown.cut }
}

/// Reads a document up to `limit` octets of text.
pub(crate) fn read(html: &str, limit: usize, characters: Characters) -> Shown {
    let whole = html.len();
    let html = limit_attributes(bounds::prefix(html, bounds::HTML_MAX));
    let mut sheet = Sheet::default();
    if has_style_sheet(&html) {
        let mut reader = SheetReader::default();
        tokenize(&html, |token| reader.read(token));
        sheet = reader.finish();
    }
    let mut reader = DocumentReader::new(sheet, limit, characters);
    tokenize(&html, |token| reader.read(token));
    let mut shown = reader.finish();
    shown.cut |= whole > bounds::HTML_MAX;
    shown
}

/// Whether there may be a `style` element.
fn has_style_sheet(html: &str) -> bool {
    let bytes = html.as_bytes();
    html.match_indices('<')
        .any(|(at, _)| bytes.get(at + 1..at + 6).is_some_and(|name| name.eq_ignore_ascii_case(b"style")))
}

/// Passes the tokens of a document to `read`.
fn tokenize(html: &str, read: impl FnMut(Token) -> TokenSinkResult<()>) {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(Sink(RefCell::new(read)), TokenizerOpts::default());
    // It stops at the end of a script only where the sink asks for that.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
}

struct Sink<F>(RefCell<F>);

impl<F: FnMut(Token) -> TokenSinkResult<()>> TokenSink for Sink<F> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        (self.0.borrow_mut())(token)
    }
}

/// Where a scan is within a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagState {
    Between,
    Name,
    /// After `=`.
    Value,
    Unquoted,
    Quoted(u8),
}

/// The document without the attributes of an element beyond the limit: the tokenizer compares each with all others.
fn limit_attributes(html: &str) -> Cow<'_, str> {
    let bytes = html.as_bytes();
    let mut kept: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|byte| *byte == b'<') {
        let start = at + open + 1;
        if !bytes.get(start).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/') {
            at = start;
            continue;
        }
        let (excess, end) = scan_tag(bytes, start);
        if let Some(excess) = excess {
            let kept = kept.get_or_insert_default();
            kept.push_str(&html[copied..excess]);
            copied = end;
        }
        at = end;
    }
    match kept {
        None => Cow::Borrowed(html),
        Some(mut kept) => {
            kept.push_str(&html[copied..]);
            Cow::Owned(kept)
        }
    }
}

/// Where a tag has too many attributes, if it has, and where it ends: at its `>`.
fn scan_tag(bytes: &[u8], start: usize) -> (Option<usize>, usize) {
    let mut state = TagState::Name;
    let mut attributes = 0;
    let mut excess = None;
    for (offset, byte) in bytes[start..].iter().enumerate() {
        let at = start + offset;
        let is_gap = byte.is_ascii_whitespace() || *byte == b'/';
        state = match (state, byte) {
            (TagState::Quoted(quote), byte) => {
                if *byte == quote {
                    TagState::Between
                } else {
                    state
                }
            }
            (_, b'>') => return (excess, at),
            (TagState::Value, b'"' | b'\'') => TagState::Quoted(*byte),
            (TagState::Value, byte) if byte.is_ascii_whitespace() => TagState::Value,
            (TagState::Value | TagState::Unquoted, byte) => {
                if byte.is_ascii_whitespace() {
                    TagState::Between
                } else {
                    TagState::Unquoted
                }
            }
            (TagState::Between | TagState::Name, b'=') if attributes > 0 => TagState::Value,
            (TagState::Between | TagState::Name, _) if is_gap => TagState::Between,
            (TagState::Name, _) => TagState::Name,
            (TagState::Between, _) => {
                attributes += 1;
                if attributes > ATTRIBUTES_MAX && excess.is_none() {
                    excess = Some(at);
                }
                TagState::Name
            }
        };
    }
    (excess, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_attributes_stay() {
        let html = "<a href='x>y' b>1 < 2</a><p data=\"<\">";
        assert!(matches!(limit_attributes(html), Cow::Borrowed(_)));
    }

    #[test]
    fn attributes_beyond_the_limit_go() {
        let many: String = (0..1_000).map(|i| format!(" a{i}=\">\"")).collect();
        let html = format!("<p{many}>text</p><b>é</b>");
        let limited = limit_attributes(&html);
        assert!(limited.len() < 2_000 && limited.ends_with(">text</p><b>é</b>"), "{limited}");
    }
}
