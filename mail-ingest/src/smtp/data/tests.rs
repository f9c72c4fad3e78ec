use super::*;
use crate::memory::MemoryBudget;

const LIMITS: DataLimits =
    DataLimits { message_octets: 200_000, header_octets: 1_000, header_fields: 10, takes_any_line: false };

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
