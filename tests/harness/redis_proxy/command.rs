//! Commands in the Redis protocol: each an array of bulk strings.

/// A PUBLISH without subscribers, whose reply takes the place of a dropped one's.
pub(super) const PUBLISH_WITHOUT_SUBSCRIBERS: &[u8] = b"*3\r\n$7\r\nPUBLISH\r\n$6\r\nnobody\r\n$0\r\n\r\n";

/// Where the first command ends; `None` if it is incomplete.
///
/// # Panics
/// It is not an array of bulk strings.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    let (mut at, strings) = number(bytes, 0, b'*')?;
    for _ in 0..strings {
        let (string, length) = number(bytes, at, b'$')?;
        at = string + length + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// Whether a command has this name.
pub(super) fn is(command: &[u8], name: &str) -> bool {
    let Some((string, length)) = number(command, 0, b'*').and_then(|(at, _)| number(command, at, b'$'))
    else {
        return false;
    };
    command[string..string + length].eq_ignore_ascii_case(name.as_bytes())
}

/// The number in the line at `at`, and where the next line begins.
fn number(bytes: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let length = line.windows(2).position(|end| end == b"\r\n")?;
    assert_eq!(line[0], kind, "clients write arrays of bulk strings");
    let number = std::str::from_utf8(&line[1..length]).ok().and_then(|text| text.parse().ok());
    Some((at + length + 2, number.expect("a number")))
}
