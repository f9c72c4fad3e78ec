//! Commands as clients write them: an array of bulk strings each.

/// A PUBLISH that nobody hears, so that the answers keep their order.
pub(super) const PUBLISH_TO_NOBODY: &[u8] = b"*3\r\n$7\r\nPUBLISH\r\n$6\r\nnobody\r\n$0\r\n\r\n";

/// Where the first command ends, if all of it is there.
///
/// # Panics
/// It is not written so.
pub(super) fn end(octets: &[u8]) -> Option<usize> {
    let (mut at, strings) = number(octets, 0, b'*')?;
    for _ in 0..strings {
        let (string, length) = number(octets, at, b'$')?;
        at = string + length + 2;
    }
    (at <= octets.len()).then_some(at)
}

/// Whether a whole command has this name.
pub(super) fn is(command: &[u8], name: &str) -> bool {
    let Some((string, length)) = number(command, 0, b'*').and_then(|(at, _)| number(command, at, b'$'))
    else {
        return false;
    };
    command[string..string + length].eq_ignore_ascii_case(name.as_bytes())
}

/// The number in the line at `at`, and where the next line begins.
fn number(octets: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let line = octets.get(at..)?;
    let length = line.windows(2).position(|end| end == b"\r\n")?;
    assert_eq!(line[0], kind, "clients write arrays of bulk strings");
    let number = std::str::from_utf8(&line[1..length]).ok().and_then(|text| text.parse().ok());
    Some((at + length + 2, number.expect("a number")))
}
