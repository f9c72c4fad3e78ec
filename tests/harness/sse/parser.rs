//! The event stream format of the HTML standard (9.2.6).

use std::collections::VecDeque;
use std::mem::take;

/// The lines between two empty lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Comments, without the colon and one space.
    pub comments: Vec<String>,
    /// The last `event`.
    pub event: Option<String>,
    /// All `data` lines, joined by line feeds.
    pub data: Option<String>,
    /// The last `id` without U+0000.
    pub id: Option<String>,
    /// The last numeric `retry`, in milliseconds.
    pub retry: Option<u64>,
}

/// Incremental parser of an event stream. An incomplete block at the end is discarded, as the standard demands.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
    /// Only the first line may begin with a byte order mark.
    has_first_line: bool,
    block: Block,
    complete: VecDeque<Block>,
}

impl Parser {
    /// Parses further bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' if take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
        }
    }

    /// The next complete block.
    pub fn block(&mut self) -> Option<Block> {
        self.complete.pop_front()
    }

    fn end_line(&mut self) {
        let bytes = take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.has_first_line { &*line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.has_first_line = true;
        if line.is_empty() {
            let block = take(&mut self.block);
            if block != Block::default() {
                self.complete.push_back(block);
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
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.block.retry = value.parse().ok().or(self.block.retry);
            }
            _ => {}
        }
    }
}
