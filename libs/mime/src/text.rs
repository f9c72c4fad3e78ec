//! Text of bodies: charsets, the removal of characters that text must not contain, and `format=flowed`.

use std::borrow::Cow;

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use mail_parser::decoders::charsets::map::charset_decoder;

use crate::header::line_end;
use crate::transfer::TransferEncoding;

/// Labels that software often declares, and sends something else.
const DEFAULT_LABELS: [&str; 6] = ["us-ascii", "ascii", "utf-8", "utf8", "unknown-8bit", "default"];
/// Octets of a document in which it declares its charset (the HTML standard has 1,024).
const DECLARED_WITHIN: usize = 4 << 10;

/// Decodes octets of a declared charset. If the charset is unknown or a default, the octets decide.
pub(crate) fn decoded<'a>(octets: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    match charset.filter(|name| is_reliable(name)).map(str::trim) {
        Some(name) if name.eq_ignore_ascii_case("utf-7") => Cow::Owned(utf_7(octets)),
        Some(name) => match charset_decoder(name.as_bytes()) {
            Some(decode) => Cow::Owned(decode(octets)),
            None => guessed(octets),
        },
        None => guessed(octets),
    }
}

/// The charset of an HTML document: the declared one or, where that is unknown or a default and the octets are not
/// UTF-8, the one that the document declares itself (RFC 2854 6).
pub(crate) fn document_charset<'a>(octets: &[u8], charset: Option<&'a str>) -> Option<Cow<'a, str>> {
    let declared = charset.map(Cow::Borrowed);
    if charset.is_some_and(is_reliable) || std::str::from_utf8(octets).is_ok() {
        return declared;
    }
    let start = String::from_utf8_lossy(&octets[..octets.len().min(DECLARED_WITHIN)]).to_ascii_lowercase();
    let tags = start.match_indices('<').map(|(at, _)| &start[at..]);
    let of_tag = |html: &str| {
        let name = match html {
            meta if meta.starts_with("<meta") => "charset",
            xml if xml.starts_with("<?xml") => "encoding",
            _ => return None,
        };
        let (_, value) = html[..html.find('>')?].split_once(name)?;
        let value = value.trim_start().strip_prefix('=')?;
        let label =
            value.split(|c: char| c.is_whitespace() || "\"';/".contains(c)).find(|word| !word.is_empty())?;
        // What was read as ASCII up to here is no UTF-16.
        (is_reliable(label) && !label.starts_with("utf")).then(|| label.to_owned())
    };
    tags.into_iter().find_map(of_tag).map(Cow::Owned).or(declared)
}

/// Whether a label names a known charset, and is none that software often declares whatever it sends.
fn is_reliable(label: &str) -> bool {
    let label = label.trim();
    let is_default = DEFAULT_LABELS.iter().any(|usual| label.eq_ignore_ascii_case(usual));
    !is_default && (label.eq_ignore_ascii_case("utf-7") || charset_decoder(label.as_bytes()).is_some())
}

/// Decodes octets whose charset is unknown: ISO-2022-JP by its escape sequences, UTF-8, also with damage here and
/// there, and all else as windows-1252, so that an invalid byte never hides the rest.
pub(crate) fn guessed(octets: &[u8]) -> Cow<'_, str> {
    let legacy = |name: &[u8]| charset_decoder(name).map(|decode| Cow::Owned(decode(octets)));
    match std::str::from_utf8(octets) {
        Ok(_) if has_japanese_escape(octets) => legacy(b"iso-2022-jp"),
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) if is_mostly_utf8(octets) => None,
        Err(_) => legacy(b"windows-1252"),
    }
    .unwrap_or_else(|| String::from_utf8_lossy(octets))
}

/// Whether text switches to JIS X 0208 (RFC 1468).
fn has_japanese_escape(octets: &[u8]) -> bool {
    memchr::memchr_iter(0x1b, octets).any(|at| matches!(octets[at + 1..], [b'$', b'@' | b'B', ..]))
        && octets.is_ascii()
}

/// Whether more characters beyond ASCII are valid than are not.
fn is_mostly_utf8(octets: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in octets.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

/// Octets that are UTF-8, without a copy.
pub(crate) fn utf8(octets: Vec<u8>) -> String {
    String::from_utf8(octets).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The octets without an incomplete UTF-8 character at their end.
pub(crate) fn whole_characters(octets: &[u8]) -> &[u8] {
    match std::str::from_utf8(octets) {
        Err(error) if error.error_len().is_none() => &octets[..error.valid_up_to()],
        _ => octets,
    }
}

/// Decodes UTF-7 (RFC 2152). The decoder of `mail_parser` loses the character after a shifted
/// sequence.
fn utf_7(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    let mut rest = octets;
    while let Some(plus) = rest.iter().position(|&b| b == b'+') {
        text.push_str(&String::from_utf8_lossy(&rest[..plus]));
        let shifted = &rest[plus + 1..];
        let len = shifted.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')));
        let (encoded, after) = shifted.split_at(len.unwrap_or(shifted.len()));
        if encoded.is_empty() {
            text.push('+');
        }
        let octets = TransferEncoding::Base64.decode(encoded);
        let units = octets.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        rest = after.strip_prefix(b"-").unwrap_or(after);
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

/// The text of a body without byte order mark, and with U+FFFD for U+0000, which databases and C
/// programs reject.
pub(crate) fn body(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Cow::Owned(mut text) => {
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            Cow::Owned(text)
        }
    };
    if text.contains('\0') {
        text = Cow::Owned(text.replace('\0', "\u{fffd}"));
    }
    text
}

/// A line of text for display: see [`printable`]; tabs become spaces.
pub fn single_line(text: &str) -> String {
    text.chars().filter_map(|c| if c == '\t' { Some(' ') } else { printable(c) }).collect()
}

/// Whether a character is default-ignorable (`Default_Ignorable_Code_Point` of Unicode): it has neither width nor
/// shape.
pub fn is_ignorable(c: char) -> bool {
    !c.is_ascii() && CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Whether a character is a joiner, which is ignorable and shapes those around it.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Whether a character is white space, or shown as such.
pub fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

/// Whether a text shows anything.
pub fn is_visible(text: &str) -> bool {
    text.chars().any(|c| !is_blank(c) && !is_ignorable(c))
}

/// A character for display: U+FFFD for U+0000; `None` for other control characters and for those that
/// change the direction of text.
pub fn printable(c: char) -> Option<char> {
    match c {
        '\0' => Some(char::REPLACEMENT_CHARACTER),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

/// How the lines of a text flow where it is `format=flowed` (RFC 3676): lines that end with a space go on in the next
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flowed {
    /// Whether the space before a soft line break is no content (`DelSp=yes`).
    pub(crate) deletes_space: bool,
}

/// A line without its quote marks, its stuffed space and its line end.
struct Line<'a> {
    quote_depth: usize,
    content: &'a str,
    end: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let unquoted = line.trim_start_matches('>');
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        let text = content.trim_end_matches(['\r', '\n']);
        Self { quote_depth: line.len() - unquoted.len(), content: text, end: &content[text.len()..] }
    }

    /// Whether the line is the separator before a signature, which never flows (RFC 3676 4.3).
    fn is_signature(&self) -> bool {
        self.content == "-- "
    }
}

impl Flowed {
    /// The text with its soft line breaks removed. Quoted paragraphs begin with their quote marks and a space; other
    /// line ends stay as they are.
    pub(crate) fn unfold(self, text: &str) -> String {
        let mut unfolded = String::with_capacity(text.len());
        // The quote depth of the paragraph that goes on, and the line end that is missing if it does not.
        let mut open: Option<(usize, &str)> = None;
        let mut at = 0;
        while at < text.len() {
            let next = line_end(text.as_bytes(), at);
            let line = Line::parse(&text[at..next]);
            at = next;
            let goes_on = open.take_if(|(depth, _)| *depth == line.quote_depth && !line.is_signature());
            if goes_on.is_none() {
                unfolded.push_str(open.take().map_or("", |(_, end)| end));
                unfolded.extend(std::iter::repeat_n('>', line.quote_depth));
                unfolded.push_str(if line.quote_depth > 0 { " " } else { "" });
            }
            let is_soft = line.content.ends_with(' ') && !line.is_signature() && !line.end.is_empty();
            if is_soft {
                let space = usize::from(self.deletes_space);
                unfolded.push_str(&line.content[..line.content.len() - space]);
                open = Some((line.quote_depth, line.end));
            } else {
                unfolded.push_str(line.content);
                unfolded.push_str(line.end);
            }
        }
        unfolded.push_str(open.map_or("", |(_, end)| end));
        unfolded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_charsets() {
        assert_eq!(decoded(b"\x1b$B%O%m!<\x1b(B", Some("ISO-2022-JP")), "ハロー");
        assert_eq!(decoded(b"\x80 caf\xe9", Some("windows-1252")), "€ café");
        assert_eq!(decoded(b"\xd0\xcf", Some("koi8-r")), "по");
        assert_eq!(decoded("ж".as_bytes(), Some("us-ascii")), "ж");
        assert_eq!(decoded(b"caf\xe9", None), "café");
        assert_eq!(decoded(b"caf\xe9", Some("x-no-such")), "café");
        assert_eq!(decoded(b"caf\xe9 au lait", Some("UTF-8")), "café au lait");
        assert_eq!(decoded(b"caf\xe9", Some("us-ascii")), "café");
        assert_eq!(decoded(b"gr\xc3\xbc\xc3\x9fe \xe9", Some("UTF-8")), "grüße \u{fffd}");
        assert_eq!(decoded(b"gr\xc3\xbc\xc3\x9fe \xe9", None), "grüße \u{fffd}");
        assert_eq!(decoded(b"\x1b$B%O%m!<\x1b(B", Some("us-ascii")), "ハロー");
        assert_eq!(decoded(b"\x93a\x94", Some("iso-8859-1")), "“a”");
        assert_eq!(decoded(b"Mom -+Jjo--! 1 +- 1 A+ImIDkQ.", Some("UTF-7")), "Mom -☺-! 1 + 1 A≢Α.");
        assert_eq!(decoded(b"h\0i\0", Some("utf-16le")), "hi");
    }

    #[test]
    fn reads_the_charset_that_a_document_declares() {
        let charset = |start: &str, declared| {
            document_charset(&[start.as_bytes(), b"\xc2\xe0"].concat(), declared).map(Cow::into_owned)
        };
        for start in [
            "<html><head><META http-equiv=\"Content-Type\" content=\"text/html; charset=Windows-1251\">",
            "<meta content='text/html;charset=windows-1251' http-equiv=Content-Type>",
            "<meta charset = windows-1251>",
            "<meta name=viewport content=x><meta charset='windows-1251'/>",
            "<?xml version=\"1.0\" encoding=\"windows-1251\"?><html>",
            "<meta charset=utf-8><meta charset=windows-1251>",
        ] {
            for declared in [None, Some("utf-8"), Some("us-ascii"), Some("x-no-such")] {
                assert_eq!(charset(start, declared).as_deref(), Some("windows-1251"), "{start}");
            }
            assert_eq!(charset(start, Some("koi8-r")).as_deref(), Some("koi8-r"), "{start}");
        }
        for start in [
            "<meta charset=x-no-such>",
            "<meta charset=utf-16>",
            "<meta charset",
            "<meta charset>",
            "<p>charset=koi8-r</p>",
            "",
        ] {
            assert_eq!(charset(start, None), None, "{start}");
        }
        let utf8 = "<meta charset=windows-1251>ж".as_bytes();
        assert_eq!(document_charset(utf8, None), None);
    }

    #[test]
    fn tells_text_that_shows_nothing() {
        assert!(!is_visible(" \u{200b}\u{2800}\r\n\u{a0}\u{3164}") && is_visible("\u{200b}x"));
    }

    #[test]
    fn removes_control_characters_and_replaces_nul() {
        assert_eq!(single_line("a\0b\x07c\u{202e}d\te\r\n"), "a\u{fffd}bcd e");
        assert_eq!(body("\u{feff}a\0\x07".into()), "a\u{fffd}\x07");
    }

    #[test]
    fn joins_lines_at_soft_breaks() {
        for (deletes_space, text, unfolded) in [
            (false, "one \r\ntwo\r\nthree \n", "one two\r\nthree \n"),
            (true, "https://a.example/?t=abc \r\ndef\r\n", "https://a.example/?t=abcdef\r\n"),
            (true, "one  \ntwo", "one two"),
            (false, " >not quoted\n From x\n", ">not quoted\nFrom x\n"),
            (false, ">a \n> b\n>> c \n> d\ne", "> a b\n>> c \n> d\ne"),
            (false, "bye \n-- \nAda", "bye \n-- \nAda"),
            (false, "\n \n\n", "\n\n\n"),
            (true, "end ", "end "),
            (false, "", ""),
        ] {
            assert_eq!(Flowed { deletes_space }.unfold(text), unfolded, "{text:?}");
        }
    }
}
