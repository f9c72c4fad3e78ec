//! The beginning of a text as one line, for previews, and the text of HTML for it, without layout and links.

use std::borrow::Cow;

use mail_parser::decoders::html::add_html_token;

use crate::text::{is_blank, is_ignorable, is_joiner, printable};

/// The first characters of the pushed text as one line: white space is folded, control characters and
/// what is [default-ignorable](is_ignorable) are removed. A joiner stays between two characters.
#[derive(Debug, Clone)]
pub struct Excerpt {
    text: String,
    /// Characters that may be added.
    remaining: usize,
    /// Whether white space precedes the next character.
    pending_space: bool,
    /// The joiner after the last character.
    pending_joiner: Option<char>,
}

impl Excerpt {
    /// An empty excerpt of at most `max` characters.
    pub fn new(max: usize) -> Self {
        Self { text: String::new(), remaining: max, pending_space: false, pending_joiner: None }
    }

    /// Adds the next piece of text, as far as it fits.
    pub fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            if self.remaining == 0 {
                return;
            }
            if is_blank(c) {
                self.pending_space = !self.text.is_empty();
                self.pending_joiner = None;
            } else if is_ignorable(c) {
                let joins = is_joiner(c) && !self.pending_space && !self.text.is_empty();
                self.pending_joiner = joins.then_some(c);
            } else if let Some(c) = printable(c) {
                let space = std::mem::take(&mut self.pending_space).then_some(' ');
                let before = space.or(self.pending_joiner.take());
                for c in before.into_iter().chain([c]).take(self.remaining) {
                    self.text.push(c);
                    self.remaining -= 1;
                }
            }
        }
    }

    /// Whether the excerpt has `max` characters.
    pub fn is_full(&self) -> bool {
        self.remaining == 0
    }

    /// Whether nothing visible was added.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl From<Excerpt> for String {
    fn from(excerpt: Excerpt) -> Self {
        excerpt.text
    }
}

/// Maximum octets of a character reference.
const REFERENCE_MAX: usize = 40;

/// Elements whose content is hidden.
const HIDDEN: &[&str] = &["script", "style", "template", "title"];

/// Elements that do not separate words.
const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "em", "font", "i", "img", "ins",
    "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time",
    "tt", "u", "var", "wbr",
];

/// Adds the text of an HTML document to an excerpt until it is full. It is a single pass; an element
/// or comment that is not closed hides the rest.
pub fn html_to_text(html: &str, excerpt: &mut Excerpt) {
    let mut rest = html;
    while !excerpt.is_full()
        && let Some(found) = memchr::memchr2(b'<', b'&', rest.as_bytes())
    {
        excerpt.push(&rest[..found]);
        rest = &rest[found..];
        let (shown, len) = if rest.starts_with('&') { reference(rest) } else { markup(rest) };
        excerpt.push(&shown);
        rest = &rest[len..];
    }
    excerpt.push(rest);
}

/// The text of the character reference at the start of `html`, and its length.
fn reference(html: &str) -> (Cow<'_, str>, usize) {
    let len = html.bytes().take(REFERENCE_MAX).position(|b| b == b';').map_or(0, |end| end + 1);
    let name = html.get(1..len.saturating_sub(1)).unwrap_or("");
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#') {
        return (Cow::Borrowed("&"), 1);
    }
    let mut shown = String::new();
    add_html_token(&mut shown, &html.as_bytes()[..len], false);
    (Cow::Owned(shown), len)
}

/// The text for the markup at the start of `html`, and its length, which includes the content of
/// hidden elements.
fn markup(html: &str) -> (Cow<'_, str>, usize) {
    let (nothing, space) = (Cow::Borrowed(""), Cow::Borrowed(" "));
    if html.starts_with("<!--") {
        return (nothing, html.find("-->").map_or(html.len(), |end| end + 3));
    }
    let closes = html[1..].starts_with('/');
    let name_at = 1 + usize::from(closes);
    match html.as_bytes().get(name_at) {
        Some(first) if first.is_ascii_alphabetic() => {}
        Some(b'!' | b'?') if !closes => return (nothing, html.find('>').map_or(html.len(), |end| end + 1)),
        _ => return (Cow::Borrowed("<"), 1),
    }
    let name = &html[name_at..];
    let name_len = name.bytes().position(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'));
    let name = &name[..name_len.unwrap_or(name.len())];
    let is_in = |elements: &[&str]| elements.iter().any(|element| name.eq_ignore_ascii_case(element));
    let len = tag_len(html);
    if !closes && is_in(HIDDEN) {
        return (nothing, len + hidden_len(&html[len..], name));
    }
    (if is_in(INLINE) { nothing } else { space }, len)
}

/// The length of a tag; `>` in a quoted attribute value does not end it.
fn tag_len(html: &str) -> usize {
    let mut quote = None;
    let mut before = b' ';
    for (i, byte) in html.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return i + 1,
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    html.len()
}

/// The length of the content of a hidden element, up to its closing tag.
fn hidden_len(html: &str, name: &str) -> usize {
    let closes = |at: usize| {
        let rest = &html.as_bytes()[at..];
        rest.get(1) == Some(&b'/')
            && rest.get(2..2 + name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes()))
    };
    memchr::memchr_iter(b'<', html.as_bytes()).find(|at| closes(*at)).unwrap_or(html.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_white_space_and_stops_at_the_limit() {
        let excerpt = |pieces: &[&str], max| {
            let mut excerpt = Excerpt::new(max);
            pieces.iter().for_each(|piece| excerpt.push(piece));
            (excerpt.is_full(), String::from(excerpt))
        };
        assert_eq!(excerpt(&["  a\r\n b\u{a0}", "", " c", "d "], 100), (false, "a b cd".into()));
        assert_eq!(excerpt(&["a \u{202e} \x07 b\0"], 100), (false, "a b\u{fffd}".into()));
        let padding = "\u{a0}\u{200c}\u{200b}\u{34f}\u{ad}\u{2800} \u{feff}\u{2060}\u{e0020}\u{fe0f}\u{3164}";
        assert_eq!(excerpt(&[padding, "a", padding, padding, "b\u{200c}"], 100), (false, "a b".into()));
        assert_eq!(
            excerpt(&["C\u{200b}o\u{ad}de \u{200d}x", "می\u{200c}شود"], 100),
            (false, "Code xمی\u{200c}شود".into())
        );
        assert_eq!(excerpt(&["éé", "éé"], 3), (true, "ééé".into()));
        assert_eq!(excerpt(&["a b"], 2), (true, "a ".into()));
        assert_eq!(excerpt(&["a"], 0), (true, String::new()));
    }

    #[test]
    fn extracts_the_visible_text() {
        for (html, text) in [
            ("<html><head><title>no</title><style>p{}</style></head><body><p>a <b>b</b>!</p>", "a b!"),
            ("<td>one</td><td>two</td><br>three<a href='x>y'>!</a>", "one two three!"),
            ("1 &lt; 2 &amp;&nbsp;&eacute;&#233;&#xE9; &nothing; &; & ;&", "1 < 2 & ééé &nothing; &; & ;&"),
            ("up&nbsp;&zwnj;&#847;&shy;&#8203; &#x2060;<p>&#xFEFF;Your", "up Your"),
            ("a < b, a<3 <!-- <p>no --><!DOCTYPE x><?xml?>c</>", "a < b, a<3 c</>"),
            ("<SCRIPT>if (a</b) {}</Script >x<script>", "x"),
            ("<p title=it's>seen</p><p title = \"a>b\">too", "seen too"),
            ("<p", ""),
            ("<!--", ""),
            ("é&é;é", "é&é;é"),
        ] {
            let mut excerpt = Excerpt::new(1_000);
            html_to_text(html, &mut excerpt);
            assert_eq!(String::from(excerpt), text, "{html}");
        }
    }
}
