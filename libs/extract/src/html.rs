//! HTML as a reader sees it.

mod color;
mod element;
mod limit;
mod look;
mod reader;
mod sheet;
mod style;
mod writer;

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::bounds;
use crate::text::Shown;
use reader::Reader;
use sheet::{Sheet, SheetReader};
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
    let html = limit::limit_attributes(bounds::prefix(html, bounds::HTML_MAX));
    let mut sheet = Sheet::default();
    if has_style_sheet(&html) {
        let mut reader = SheetReader::default();
        tokenize(&html, |token| reader.read(token));
        sheet = reader.finish();
    }
    let mut reader = Reader::new(sheet, limit, characters);
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
