//! What bounds the parser: HTML is handed to it in small pieces, until its time is over, and its output has an end.
//! Nested or repeated elements make parsers slow by the square of their number.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

/// Bytes after which the time is looked at.
const PIECE: usize = 512;
/// Bytes that are read whatever the time: that a machine is busy shortens no small mail.
const UNTIMED: usize = 16 << 10;

/// HTML that ends early when the time is over.
pub(super) struct TimedReader<'a> {
    rest: &'a [u8],
    /// Bytes that were read.
    read: usize,
    deadline: Instant,
    /// Whether some of it was not read.
    pub(super) truncated: bool,
}

impl<'a> TimedReader<'a> {
    pub(super) fn new(html: &'a str, deadline: Instant) -> Self {
        Self { rest: html.as_bytes(), read: 0, deadline, truncated: false }
    }
}

impl Read for TimedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            return Ok(0);
        }
        if self.read >= UNTIMED && Instant::now() >= self.deadline {
            self.truncated = true;
            self.rest = &[];
            return Ok(0);
        }
        let length = self.rest.len().min(buffer.len()).min(PIECE);
        let (piece, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.rest = rest;
        self.read += length;
        Ok(length)
    }
}

/// Output of at most so many bytes.
pub(super) struct LimitedWriter {
    bytes: Vec<u8>,
    max: usize,
}

impl LimitedWriter {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max }
    }

    /// The output, without the tag at its end if that may be incomplete.
    pub(super) fn into_html(self, is_complete: bool) -> String {
        let mut bytes = self.bytes;
        if !is_complete {
            let last = bytes.iter().rposition(|byte| *byte == b'<').unwrap_or(0);
            bytes.truncate(last);
        }
        String::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for LimitedWriter {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max {
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ends_the_html_when_its_time_is_over() {
        let html = "x".repeat(2 * UNTIMED);
        let read = |deadline| {
            let (mut text, mut reader) = (String::new(), TimedReader::new(&html, deadline));
            reader.read_to_string(&mut text).unwrap();
            (text.len(), reader.truncated)
        };
        assert_eq!(read(Instant::now() + Duration::from_secs(600)), (2 * UNTIMED, false));
        assert_eq!(read(Instant::now()), (UNTIMED, true));
    }

    #[test]
    fn leaves_out_an_incomplete_tag() {
        let mut writer = LimitedWriter::new(12);
        writer.write_all(b"<p>text<a ").unwrap();
        assert!(writer.write_all(b"href=x>").is_err());
        assert_eq!(writer.into_html(false), "<p>text");
    }
}
