//! Message data while it is received, dot-stuffed by DATA or in chunks by BDAT. It is scanned by
//! lines, and accepted or rejected at its end. Once it has an error the data is discarded, but read
//! to its end, so that nothing in it is mistaken for a command.

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
    /// Whether any line is taken: it is as long as the message, a bare LF ends it and is stored as CRLF, and a bare
    /// CR stays. Else these are errors. Between servers a bare line end would let one smuggle a second message.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBudget;

    const LIMITS: DataLimits = DataLimits {
        message_octets: 200_000,
        header_octets: 1_000,
        header_fields: 10,
        takes_any_line: false,
    };

    fn buffer(budget: &MemoryBudget) -> MessageBuffer {
        budget.open(None, Vec::new()).unwrap()
    }

    fn dotted(input: &[u8], step: usize) -> (Option<usize>, Result<Vec<u8>, Reply>) {
        let mut data = MessageData::begin(LIMITS, buffer(&MemoryBudget::of(1 << 20)));
        let mut end = None;
        let mut at = 0;
        while end.is_none() && at < input.len() {
            let block = &input[at..input.len().min(at + step)];
            let (consumed, ended) = data.receive_dotted(block);
            assert!(ended || consumed == block.len());
            at += consumed;
            end = ended.then_some(at);
        }
        (end, data.finish().map(|(data, _)| data))
    }

    fn chunked(input: &[u8], step: usize) -> Result<Vec<u8>, Reply> {
        let mut data = MessageData::begin(LIMITS, buffer(&MemoryBudget::of(1 << 20)));
        for block in input.chunks(step) {
            data.receive_chunk(block);
        }
        data.finish().map(|(data, _)| data)
    }

    #[test]
    fn removes_stuffed_dots() {
        let input = b"a: b\r\n\r\n..\r\n...c\r\n.d\r\n. \r\n.\r\nQUIT";
        for step in 1..=input.len() {
            let (end, data) = dotted(input, step);
            assert_eq!(data.unwrap(), b"a: b\r\n\r\n.\r\n..c\r\nd\r\n \r\n", "{step}");
            assert_eq!(end, Some(input.len() - 4));
        }
        assert_eq!(dotted(b".\r\n", 1), (Some(3), Ok(Vec::new())));
    }

    #[test]
    fn takes_any_line_where_all_mail_is_caught() {
        let limits = DataLimits { takes_any_line: true, ..LIMITS };
        for (input, expected) in [
            (&b"a: b\n\nc\n.\n"[..], &b"a: b\r\n\r\nc\r\n"[..]),
            (b"a: b\r\n\nc\n..d\n.\r\n", b"a: b\r\n\r\nc\r\n.d\r\n"),
            (b"\n.\n", b"\r\n"),
            (b".\n", b""),
        ] {
            for step in 1..=input.len() {
                let mut data = MessageData::begin(limits, buffer(&MemoryBudget::of(1 << 20)));
                let ended = input.chunks(step).map(|block| data.receive_dotted(block)).last();
                assert!(ended.unwrap().1, "{}", input.escape_ascii());
                assert_eq!(data.finish().unwrap().0, expected, "{} {step}", input.escape_ascii());
            }
        }
        let mut data = MessageData::begin(limits, buffer(&MemoryBudget::of(1 << 20)));
        data.receive_chunk(b"a: b\n\n.\nc");
        assert_eq!(data.finish().unwrap().0, b"a: b\r\n\r\n.\r\nc");
        let long = "x".repeat(70_000);
        for (input, expected) in [
            (format!("\r\n{long}\r\n.\r\n"), format!("\r\n{long}\r\n")),
            ("a\rb\n\r\r\n\r.\r\n.\rc\n.\r\n".to_owned(), "a\rb\r\n\r\r\n\r.\r\n\rc\r\n".to_owned()),
            ("a: b\n\rc\n\nd\n.\n".to_owned(), "a: b\r\n\rc\r\n\r\nd\r\n".to_owned()),
        ] {
            for step in [1, 2, 3, 7, input.len()] {
                let mut data = MessageData::begin(limits, buffer(&MemoryBudget::of(1 << 20)));
                let ended = input.as_bytes().chunks(step).map(|block| data.receive_dotted(block)).last();
                assert!(ended.unwrap().1, "{}", input.escape_debug());
                let stored = data.finish().unwrap().0;
                assert_eq!(stored, expected.as_bytes(), "{} {step}", stored.escape_ascii());
            }
        }
        let mut data = MessageData::begin(limits, buffer(&MemoryBudget::of(1 << 20)));
        data.receive_chunk(b"a\rb\n\r");
        assert_eq!(data.finish().unwrap().0, b"a\rb\r\n\r", "a bare CR stays");
    }

    #[test]
    fn ends_at_crlf_dot_crlf_only_so_that_nothing_is_smuggled() {
        for variant in [
            "\n.\n",
            "\n.\r\n",
            "\r.\r",
            "\r.\r\n",
            "\r\n.\n",
            "\r\n.\r",
            "\r\n\0.\r\n",
            "\n\n.\r\n",
            "\r\r\n.\r\r\n",
            "\r\n.\r\r\n",
            "\n\r.\n\r",
            "\r\n.\n\r\n",
            "\r\n..\n",
            "\r\n.\r.\r\n",
        ] {
            let input = format!("a: b\r\n\r\nx{variant}MAIL FROM:<evil@a.example>\r\n\r\n.\r\nQUIT\r\n");
            for step in 1..=input.len() {
                let (end, data) = dotted(input.as_bytes(), step);
                assert_eq!(end, Some(input.len() - 6), "{variant:?} {step}");
                let smuggling = variant != "\r\n\0.\r\n";
                assert_eq!(data.err(), smuggling.then_some(reply::BARE_LINE_END), "{variant:?} {step}");
            }
        }
    }

    #[test]
    fn rejects_bare_line_ends_anywhere() {
        for message in [
            "\nSubject: x\r\n\r\nb\r\n",
            "Subject: x\n\r\nb\r\n",
            "Subject: x\r\n\r\nb\n\r\n",
            "Subject: x\r\n\r\nb\r",
            "Subject: x\rFrom: y\r\n\r\nb\r\n",
            "Subject: x\r\n\r\n\rb\r\n",
            "\r",
            "\n",
            "Subject: x\r\n\r\nb\r\r\n",
        ] {
            let input = format!("{message}\r\n.\r\n");
            for step in 1..=input.len() {
                let (_, data) = dotted(input.as_bytes(), step);
                assert_eq!(data, Err(reply::BARE_LINE_END), "{message:?} {step}");
            }
        }
    }

    #[test]
    fn keeps_dots_in_chunks() {
        let input = b"a: b\r\n\r\n.\r\n..\r\nno end";
        for step in 1..=input.len() {
            assert_eq!(chunked(input, step).unwrap(), input);
        }
        for invalid in [&b"a\rb"[..], b"a\nb", b"a\r\n\n", b"a\r", b"\r\r\n"] {
            for step in 1..=invalid.len() {
                assert_eq!(chunked(invalid, step), Err(reply::BARE_LINE_END), "{}", invalid.escape_ascii());
            }
        }
        assert_eq!(chunked(b"", 1), Ok(Vec::new()));
    }

    #[test]
    fn enforces_limits_however_the_data_is_split() {
        let line = |octets: usize| format!("\r\n{}\r\n", "x".repeat(octets));
        let header = |octets: usize| format!("a: {}\r\n\r\n", "x".repeat(octets - 7));
        let fields = |count: usize| format!("{}\r\nbody: 1\r\n", "a: b\r\n c\r\n".repeat(count));
        let whole = |octets: usize| format!("\r\n{}", "x".repeat(98).add_crlf().repeat(octets / 100));
        for (input, reply) in [
            (line(65_536), None),
            (line(65_537), Some(reply::DATA_LINE_TOO_LONG)),
            (header(1_000), None),
            (header(1_001), Some(reply::HEADER_TOO_BIG)),
            ("x".repeat(1_001), Some(reply::HEADER_TOO_BIG)),
            (fields(10), None),
            (fields(11), Some(reply::HEADER_TOO_BIG)),
            (whole(199_900), None),
            (whole(200_000), Some(reply::TOO_BIG)),
            (whole(200_000) + "\n", Some(reply::TOO_BIG)),
        ] {
            for step in [1, 7, 4096, input.len()] {
                assert_eq!(chunked(input.as_bytes(), step).err(), reply, "{} {step}", input.len());
            }
        }
    }

    trait AddCrlf {
        fn add_crlf(self) -> String;
    }

    impl AddCrlf for String {
        fn add_crlf(self) -> String {
            self + "\r\n"
        }
    }

    #[test]
    fn counts_and_limits_memory() {
        let budget = MemoryBudget::of(10_000);
        let mut data = MessageData::begin(LIMITS, buffer(&budget));
        data.receive_chunk(b"\r\n");
        assert_eq!(budget.used(), 4_096);
        data.receive_chunk(&[b'x'; 8_000]);
        assert_eq!((data.error_reply(), budget.used()), (None, 8_192));
        data.receive_chunk(&[b'x'; 8_000]);
        assert_eq!(data.error_reply(), Some(reply::NO_MEMORY));
        assert!(data.buffer.is_none());
        assert_eq!(budget.used(), 0);
    }
}
