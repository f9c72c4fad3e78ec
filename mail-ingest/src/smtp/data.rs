//! Message data while it is received, dot-stuffed by DATA or in chunks by BDAT. It is scanned by
//! lines, and accepted or rejected at its end. Once it has an error the data is discarded, but read
//! to its end, so that nothing in it is mistaken for a command.

#[cfg(test)]
mod tests;

use memchr::memchr2;

use super::reply::{self, Reply};
use crate::memory::{MemoryError, MessageBuffer, MessageMemory};

/// Maximum octets of a line without its CRLF, unless any line is taken.
const LINE_MAX: u64 = 64 << 10;

/// Bounds of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataLimits {
    /// Maximum octets of the message.
    pub(crate) message_octets: u64,
    /// Maximum octets of the header section.
    pub(crate) header_octets: u64,
    /// Maximum fields of the header section.
    pub(crate) header_fields: u32,
    /// Whether any line is taken: it is as long as the message, a bare LF ends it and is stored as CRLF, and a bare CR stays.
    /// Else these are errors. Between servers a bare line end would let one smuggle a second message.
    pub(crate) takes_any_line: bool,
}

/// The position of the scan in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    Start,
    Within,
    /// After a CR, before the LF that has to follow.
    Cr,
    /// After a dot at the start of a line (DATA only), which is not part of the data.
    Dot,
    /// After such a dot and a CR.
    DotCr,
}

/// The errors of the data. All are recorded and one is reported, so that the reply does not depend
/// on how the data was split.
#[derive(Debug, Default, Clone, Copy)]
struct DataErrors {
    bare_line_end: bool,
    long_line: bool,
    too_big: bool,
    header_too_big: bool,
    no_memory: Option<MemoryError>,
}

/// A message that is being received.
#[derive(Debug)]
pub(super) struct MessageData {
    limits: DataLimits,
    /// `None` once there is an error.
    buffer: Option<MessageBuffer>,
    errors: DataErrors,
    position: LinePosition,
    /// Octets of the message, including discarded ones.
    octets: u64,
    line_octets: u64,
    header_fields: u32,
    in_header: bool,
}

impl MessageData {
    /// An empty message, which is received into `buffer`.
    pub(super) fn begin(limits: DataLimits, buffer: MessageBuffer) -> Self {
        Self {
            limits,
            buffer: Some(buffer),
            errors: DataErrors::default(),
            position: LinePosition::Start,
            octets: 0,
            line_octets: 0,
            header_fields: 0,
            in_header: true,
        }
    }

    /// Receives input of DATA up to the end of data, which is CRLF . CRLF and nothing else. Returns
    /// the octets consumed, and whether the end was among them.
    pub(super) fn receive_dotted(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < input.len() {
            match (self.position, input[at]) {
                (LinePosition::Start, b'.') => {
                    self.position = LinePosition::Dot;
                    at += 1;
                }
                (LinePosition::Dot, b'\r') => {
                    self.position = LinePosition::DotCr;
                    at += 1;
                }
                (LinePosition::DotCr, b'\n') => return (at + 1, true),
                (LinePosition::Dot, b'\n') if self.limits.takes_any_line => return (at + 1, true),
                (LinePosition::DotCr, _) => {
                    self.bare_cr();
                    self.start_line(b'\r');
                    self.append(b"\r");
                }
                (LinePosition::Dot, first) => self.start_line(first),
                _ => at += self.scan(&input[at..], true),
            }
        }
        (at, false)
    }

    /// Receives octets of a BDAT chunk, all of which are data.
    pub(super) fn receive_chunk(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let scanned = self.scan(input, false);
            input = &input[scanned..];
        }
    }

    /// The reply that rejects the message for an error found so far.
    pub(super) fn error_reply(&self) -> Option<Reply> {
        let DataErrors { bare_line_end, long_line, too_big, header_too_big, no_memory } = self.errors;
        if too_big {
            Some(reply::TOO_BIG)
        } else if bare_line_end {
            Some(reply::BARE_LINE_END)
        } else if long_line {
            Some(reply::DATA_LINE_TOO_LONG)
        } else if header_too_big {
            Some(reply::HEADER_TOO_BIG)
        } else {
            no_memory.map(Reply::from)
        }
    }

    /// The data without stuffed dots and terminator, and its memory.
    ///
    /// # Errors
    /// The reply that rejects the message.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, MessageMemory), Reply> {
        if self.position == LinePosition::Cr {
            self.bare_cr();
        }
        match (self.error_reply(), self.buffer) {
            (None, Some(buffer)) => Ok(buffer.finish()),
            (reply, _) => Err(reply.unwrap_or(reply::NO_MEMORY)),
        }
    }

    /// Scans lines up to one that starts with a dot (if `dotted`) or the end of the input, and
    /// appends them at once. Returns the octets consumed, at least one.
    fn scan(&mut self, input: &[u8], dotted: bool) -> usize {
        let mut at = 0;
        // What is appended already.
        let mut appended = 0;
        while at < input.len() {
            match self.position {
                LinePosition::Start if dotted && input[at] == b'.' => break,
                LinePosition::Start => self.start_line(input[at]),
                LinePosition::Within | LinePosition::Dot | LinePosition::DotCr => {
                    let Some(end) = memchr2(b'\r', b'\n', &input[at..]) else {
                        self.count_line(input.len() - at);
                        at = input.len();
                        break;
                    };
                    self.count_line(end);
                    at += end;
                    at += 1;
                    if input[at - 1] == b'\r' {
                        self.position = LinePosition::Cr;
                    } else if self.limits.takes_any_line {
                        self.append(&input[appended..at - 1]);
                        self.append(b"\r\n");
                        appended = at;
                        self.end_line(self.octets);
                    } else {
                        self.errors.bare_line_end = true;
                    }
                }
                LinePosition::Cr if input[at] == b'\n' => {
                    at += 1;
                    self.end_line(self.octets + (at - appended) as u64);
                }
                LinePosition::Cr => {
                    self.bare_cr();
                    self.position = LinePosition::Within;
                }
            }
        }
        self.append(&input[appended..at]);
        at
    }

    fn start_line(&mut self, first: u8) {
        if self.in_header && !matches!(first, b' ' | b'\t' | b'\r' | b'\n') {
            self.header_fields += 1;
        }
        self.position = LinePosition::Within;
    }

    fn bare_cr(&mut self) {
        if self.limits.takes_any_line {
            self.line_octets += 1;
        } else {
            self.errors.bare_line_end = true;
        }
    }

    fn count_line(&mut self, octets: usize) {
        self.line_octets += octets as u64;
        if self.line_octets > LINE_MAX && !self.limits.takes_any_line {
            self.errors.long_line = true;
        }
    }

    /// Ends a line after its CRLF; `octets` is the length of the message up to here.
    fn end_line(&mut self, octets: u64) {
        if self.in_header {
            self.in_header = self.line_octets > 0;
            self.check_header(octets);
        }
        self.line_octets = 0;
        self.position = LinePosition::Start;
    }

    fn check_header(&mut self, octets: u64) {
        if octets > self.limits.header_octets || self.header_fields > self.limits.header_fields {
            self.errors.header_too_big = true;
        }
    }

    fn append(&mut self, run: &[u8]) {
        self.octets += run.len() as u64;
        if self.octets > self.limits.message_octets {
            self.errors.too_big = true;
        }
        if self.in_header {
            self.check_header(self.octets);
        }
        if self.error_reply().is_none()
            && let Some(buffer) = &mut self.buffer
        {
            let most = usize::try_from(self.limits.message_octets).unwrap_or(usize::MAX);
            self.errors.no_memory = buffer.append(run, most).err();
        }
        if self.error_reply().is_some() {
            self.buffer = None;
        }
    }
}
