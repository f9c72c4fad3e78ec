//! Message data as it comes in, with DATA's dots or in BDAT's chunks: scanned by lines, judged
//! as a whole at its end. Once something is wrong the data is discarded, but read on to its
//! true end, so that nothing in it is ever taken for a command.

use memchr::memchr2;

use super::reply::{self, Reply};
use crate::memory::MemoryPermit;

/// Octets of the first buffer: most mail is small, and a half-sent one must cost little.
const FIRST_BUFFER: usize = 4 << 10;
/// Longest line without its CRLF.
const LINE_MAX: u64 = 64 << 10;

/// Bounds of a message.
#[derive(Debug, Clone, Copy)]
pub struct DataLimits {
    /// Octets of the message.
    pub message_octets: u64,
    /// Octets of the header section.
    pub header_octets: u64,
    /// Fields of the header section.
    pub header_fields: u32,
}

/// Where in a line the scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    InLine,
    /// Behind a CR that is not yet known to be followed by LF.
    Cr,
    /// Behind a dot that began a line (DATA only); it is not part of the data.
    Dot,
    /// Behind such a dot and CR.
    DotCr,
}

/// What is wrong with the data, however it was split: all of it is noted, one is told.
#[derive(Debug, Default, Clone, Copy)]
struct Faults {
    bare_line_end: bool,
    long_line: bool,
    too_big: bool,
    header_too_big: bool,
    no_memory: bool,
}

/// A message that is being received.
#[derive(Debug)]
pub struct MessageData {
    limits: DataLimits,
    buffer: Vec<u8>,
    memory: MemoryPermit,
    faults: Faults,
    at: At,
    /// Octets of the message, those discarded included.
    octets: u64,
    line_octets: u64,
    header_fields: u32,
    in_header: bool,
}

impl MessageData {
    /// A message of nothing yet; `None` where the memory budget has no room for it.
    pub fn begin(limits: DataLimits, mut memory: MemoryPermit) -> Option<Self> {
        memory.grow_to(FIRST_BUFFER).then(|| Self {
            limits,
            buffer: Vec::new(),
            memory,
            faults: Faults::default(),
            at: At::LineStart,
            octets: 0,
            line_octets: 0,
            header_fields: 0,
            in_header: true,
        })
    }

    /// Takes in data of DATA, up to its end. Returns the octets consumed, and whether the end
    /// (CRLF . CRLF, nothing else) was among them.
    pub fn receive_dotted(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < input.len() {
            match (self.at, input[at]) {
                (At::LineStart, b'.') => {
                    self.at = At::Dot;
                    at += 1;
                }
                (At::Dot, b'\r') => {
                    self.at = At::DotCr;
                    at += 1;
                }
                (At::DotCr, b'\n') => return (at + 1, true),
                (At::DotCr, _) => {
                    self.faults.bare_line_end = true;
                    self.begin_line(b'\r');
                    self.append(b"\r");
                }
                (At::Dot, first) => self.begin_line(first),
                _ => at += self.scan(&input[at..], true),
            }
        }
        (at, false)
    }

    /// Takes in octets of a BDAT chunk, all of them data.
    pub fn receive(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let scanned = self.scan(input, false);
            input = &input[scanned..];
        }
    }

    /// The reply that a fault found so far will end in.
    pub fn fault(&self) -> Option<Reply> {
        let Faults { bare_line_end, long_line, too_big, header_too_big, no_memory } = self.faults;
        if too_big {
            Some(reply::TOO_BIG)
        } else if bare_line_end {
            Some(reply::BARE_LINE_END)
        } else if long_line {
            Some(reply::DATA_LINE_TOO_LONG)
        } else if header_too_big {
            Some(reply::HEADER_TOO_BIG)
        } else if no_memory {
            Some(reply::NO_MEMORY)
        } else {
            None
        }
    }

    /// The data as received, without dots and terminator, and its place in the memory budget.
    ///
    /// # Errors
    /// The reply that refuses the message.
    pub fn finish(mut self) -> Result<(Vec<u8>, MemoryPermit), Reply> {
        if self.at == At::Cr {
            self.faults.bare_line_end = true;
        }
        match self.fault() {
            None => Ok((self.buffer, self.memory)),
            Some(reply) => Err(reply),
        }
    }

    /// Scans lines up to one that begins with a dot (if `dotted`) or the end of the input, and
    /// appends them in one piece. Returns the octets consumed, at least one.
    fn scan(&mut self, input: &[u8], dotted: bool) -> usize {
        let mut at = 0;
        let start = self.octets;
        while at < input.len() {
            match self.at {
                At::LineStart if dotted && input[at] == b'.' => break,
                At::LineStart => self.begin_line(input[at]),
                At::InLine | At::Dot | At::DotCr => {
                    let Some(end) = memchr2(b'\r', b'\n', &input[at..]) else {
                        self.count_line(input.len() - at);
                        at = input.len();
                        break;
                    };
                    self.count_line(end);
                    at += end;
                    if input[at] == b'\r' {
                        self.at = At::Cr;
                    } else {
                        self.faults.bare_line_end = true;
                    }
                    at += 1;
                }
                At::Cr if input[at] == b'\n' => {
                    at += 1;
                    self.end_line(start + at as u64);
                }
                At::Cr => {
                    self.faults.bare_line_end = true;
                    self.at = At::InLine;
                }
            }
        }
        self.append(&input[..at]);
        at
    }

    fn begin_line(&mut self, first: u8) {
        if self.in_header && !matches!(first, b' ' | b'\t' | b'\r') {
            self.header_fields += 1;
        }
        self.at = At::InLine;
    }

    fn count_line(&mut self, octets: usize) {
        self.line_octets += octets as u64;
        if self.line_octets > LINE_MAX {
            self.faults.long_line = true;
        }
    }

    /// Behind a CRLF; `octets` of the message stand before it.
    fn end_line(&mut self, octets: u64) {
        if self.in_header {
            self.in_header = self.line_octets > 0;
            self.check_header(octets);
        }
        self.line_octets = 0;
        self.at = At::LineStart;
    }

    fn check_header(&mut self, octets: u64) {
        if octets > self.limits.header_octets || self.header_fields > self.limits.header_fields {
            self.faults.header_too_big = true;
        }
    }

    fn append(&mut self, run: &[u8]) {
        self.octets += run.len() as u64;
        if self.octets > self.limits.message_octets {
            self.faults.too_big = true;
        }
        if self.in_header {
            self.check_header(self.octets);
        }
        if self.fault().is_none() && !self.has_room(run.len()) {
            self.faults.no_memory = true;
        }
        if self.fault().is_none() {
            self.buffer.extend_from_slice(run);
        } else {
            self.buffer = Vec::new();
            self.memory.release();
        }
    }

    /// Grows buffer and permit together, doubling, never beyond what a message may have.
    fn has_room(&mut self, more: usize) -> bool {
        let needed = self.buffer.len() + more;
        if needed <= self.buffer.capacity() {
            return true;
        }
        let most = usize::try_from(self.limits.message_octets).unwrap_or(usize::MAX);
        let capacity = needed.max(self.buffer.capacity() * 2).min(most).max(FIRST_BUFFER);
        let grown = self.memory.grow_to(capacity);
        if grown {
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBudget;

    const LIMITS: DataLimits =
        DataLimits { message_octets: 200_000, header_octets: 1_000, header_fields: 10 };

    fn dotted(input: &[u8], step: usize) -> (Option<usize>, Result<Vec<u8>, Reply>) {
        let budget = MemoryBudget::new(1 << 20);
        let mut data = MessageData::begin(LIMITS, budget.permit()).unwrap();
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
        let mut data = MessageData::begin(LIMITS, MemoryBudget::new(1 << 20).permit()).unwrap();
        for block in input.chunks(step) {
            data.receive(block);
        }
        data.finish().map(|(data, _)| data)
    }

    #[test]
    fn dots_are_unstuffed() {
        let input = b"a: b\r\n\r\n..\r\n...c\r\n.d\r\n. \r\n.\r\nQUIT";
        for step in 1..=input.len() {
            let (end, data) = dotted(input, step);
            assert_eq!(data.unwrap(), b"a: b\r\n\r\n.\r\n..c\r\nd\r\n \r\n", "{step}");
            assert_eq!(end, Some(input.len() - 4));
        }
        assert_eq!(dotted(b".\r\n", 1), (Some(3), Ok(Vec::new())));
    }

    #[test]
    fn only_crlf_dot_crlf_ends_and_nothing_is_smuggled() {
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
    fn chunks_are_data_as_they_are() {
        let input = b"a: b\r\n\r\n.\r\n..\r\nno end";
        for step in 1..=input.len() {
            assert_eq!(chunked(input, step).unwrap(), input);
        }
        for wrong in [&b"a\rb"[..], b"a\nb", b"a\r\n\n", b"a\r", b"\r\r\n"] {
            for step in 1..=wrong.len() {
                assert_eq!(chunked(wrong, step), Err(reply::BARE_LINE_END), "{}", wrong.escape_ascii());
            }
        }
        assert_eq!(chunked(b"", 1), Ok(Vec::new()));
    }

    #[test]
    fn bounds_hold_however_the_data_is_split() {
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
    fn memory_is_counted_and_bounded() {
        let budget = MemoryBudget::new(10_000);
        let mut data = MessageData::begin(LIMITS, budget.permit()).unwrap();
        data.receive(b"\r\n");
        assert_eq!(budget.used(), FIRST_BUFFER);
        data.receive(&[b'x'; 8_000]);
        assert_eq!((data.fault(), budget.used()), (None, 8_192));
        data.receive(&[b'x'; 8_000]);
        assert_eq!(data.fault(), Some(reply::NO_MEMORY));
        assert_eq!((data.buffer.capacity(), budget.used()), (0, 0));
        let _all = {
            let mut permit = budget.permit();
            permit.grow_to(10_000);
            permit
        };
        assert!(MessageData::begin(LIMITS, budget.permit()).is_none());
    }
}
