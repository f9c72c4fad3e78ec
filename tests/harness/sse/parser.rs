//! The event stream format of the HTML standard (9.2.6).

use std::collections::VecDeque;
use std::mem::take;

/// What stands between two empty lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Comments, each without its colon and one space.
    pub comments: Vec<String>,
    /// The last `event`.
    pub event: Option<String>,
    /// All `data`, joined by line feeds.
    pub data: Option<String>,
    /// The last `id` that has no U+0000.
    pub id: Option<String>,
    /// The last `retry` that is a number: milliseconds.
    pub retry: Option<u64>,
}

/// Takes a stream apart, in whatever pieces it comes. A block that the stream ends in is never
/// given, as the standard wants it.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last octet was a carriage return, which a line feed belongs to.
    after_return: bool,
    /// A first line may begin with a byte order mark.
    is_begun: bool,
    block: Block,
    whole: VecDeque<Block>,
}

impl Parser {
    /// Takes the next octets.
    pub fn push(&mut self, octets: &[u8]) {
        for &octet in octets {
            match octet {
                b'\n' if take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = octet == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.line.push(octet);
                }
            }
        }
    }

    /// The next block that is whole.
    pub fn block(&mut self) -> Option<Block> {
        self.whole.pop_front()
    }

    fn end_line(&mut self) {
        let octets = take(&mut self.line);
        let line = String::from_utf8_lossy(&octets);
        let line = if self.is_begun { &*line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.is_begun = true;
        if line.is_empty() {
            let block = take(&mut self.block);
            if block != Block::default() {
                self.whole.push_back(block);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.block.comments.push(value.to_owned()),
            "event" => self.block.event = Some(value.to_owned()),
            "data" => match &mut self.block.data {
                Some(data) => *data = format!("{data}\n{value}"),
                None => self.block.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|octet| octet.is_ascii_digit()) => {
                self.block.retry = value.parse().ok().or(self.block.retry);
            }
            _ => {}
        }
    }
}
