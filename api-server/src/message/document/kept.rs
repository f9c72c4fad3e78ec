//! Elements whose text or look the sanitizer would lose, as elements that it keeps.

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// Elements that have another name in the document. One that the sanitizer does not know keeps its content.
const RENAMED: [(&str, &str); 6] = [
    ("body", "div"),
    ("button", "span"),
    ("html", "div"),
    ("marquee", "div"),
    // The parser reads its content as text.
    ("noscript", "no-script"),
    // The library looks up its ancestors, each time.
    ("selectedcontent", "selected-content"),
];
/// Bytes of a name that is looked at.
const NAME_MAX: usize = 20;
/// Bytes of a tag that is written anew.
const TAG_MAX: usize = 4 << 10;
/// Tags that are written anew: the parser compares each attribute with all others.
const REWRITTEN_MAX: usize = 500;

/// HTML with these elements as others: those around the content with the colours that their attributes give them, and
/// buttons as text.
pub(super) fn with_kept_elements(html: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut copied, mut rewritten) = (0, 0);
    for (at, _) in html.match_indices('<') {
        if at < copied {
            continue;
        }
        let name_at = at + 1 + usize::from(html[at + 1..].starts_with('/'));
        let name = element_name(&html[name_at..]);
        let is_one_of = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
        let (written, end) =
            if name_at == at + 1 && is_one_of(&["html", "body", "input"]) && rewritten < REWRITTEN_MAX {
                rewritten += 1;
                let Some((tag, len)) = first_tag(&html[at..]) else { continue };
                let written = if is_one_of(&["input"]) { button(&tag) } else { Some(container(&tag)) };
                let Some(written) = written else { continue };
                (written, at + len)
            } else {
                let Some((_, new)) = RENAMED.iter().find(|(old, _)| is_one_of(&[old])) else { continue };
                (format!("{}{new}", &html[at..name_at]), name_at + name.len())
            };
        kept.push_str(&html[copied..at]);
        kept.push_str(&written);
        copied = end;
    }
    if copied == 0 {
        return html.into();
    }
    kept.push_str(&html[copied..]);
    kept.into()
}

/// The name of the element whose tag goes on so.
fn element_name(html: &str) -> &str {
    let end = html
        .bytes()
        .take(NAME_MAX)
        .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
    &html[..end.unwrap_or(0)]
}

/// The tag that HTML begins with, and its length; `None` if it is too long.
fn first_tag(html: &str) -> Option<(Tag, usize)> {
    let html = &html[..html.floor_char_boundary(TAG_MAX)];
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(FirstTag::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    let mut len = html.len();
    while let Some(rest) = input.pop_front() {
        len -= rest.len();
    }
    Some((tokenizer.sink.0.into_inner()?, len))
}

/// Stops the tokenizer after a tag.
#[derive(Default)]
struct FirstTag(RefCell<Option<Tag>>);

impl TokenSink for FirstTag {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                self.0.replace(Some(tag));
                TokenSinkResult::Script(())
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

/// The start of the element in place of `html` or `body`, whose attributes say how all of the content looks.
fn container(tag: &Tag) -> String {
    let mut style = String::new();
    for (attribute, property) in [("bgcolor", "background-color"), ("text", "color")] {
        if let Some(color) = value(tag, attribute) {
            style.extend([property, ":", &css_color(color), ";"]);
        }
    }
    style.push_str(value(tag, "style").unwrap_or_default());
    let attributes = ["align", "dir", "lang"].map(|name| (name, value(tag, name)));
    let mut written = String::from("<div");
    for (name, value) in attributes.into_iter().chain([("style", Some(style.as_str()))]) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            written.extend([" ", name, "=\"", &escaped(value), "\""]);
        }
    }
    written.push('>');
    written
}

/// The text of an `input` that is a button.
fn button(tag: &Tag) -> Option<String> {
    let kind = value(tag, "type")?.trim();
    let is_button = ["button", "reset", "submit"].iter().any(|button| kind.eq_ignore_ascii_case(button));
    let text = value(tag, "value").filter(|_| is_button)?;
    let style = value(tag, "style").unwrap_or_default();
    Some(format!("<span style=\"{}\">{}</span>", escaped(style), escaped(text)))
}

fn value<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

/// A colour of an attribute in CSS: there `#` is required.
fn css_color(color: &str) -> Cow<'_, str> {
    let color = color.trim();
    let lacks_sign = matches!(color.len(), 3 | 6) && color.bytes().all(|byte| byte.is_ascii_hexdigit());
    if lacks_sign { format!("#{color}").into() } else { color.into() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_texts_of_buttons_and_colours_of_the_body() {
        for (html, kept) in [
            ("<a><BUTTON class=x>Go</Button></a>", "<a><span class=x>Go</span></a>"),
            ("<marquee>a</marquee><noscript>b</noscript>", "<div>a</div><no-script>b</no-script>"),
            (
                "<input type=Submit value='a \"b\" &amp; <c'>",
                "<span style=\"\">a &quot;b&quot; &amp; &lt;c</span>",
            ),
            ("<input value=typed><input>", "<input value=typed><input>"),
            (
                "<HTML lang=de><body bgcolor='101820' text=white style='margin:0' onload=x>b</body></html>",
                "<div lang=\"de\"><div style=\"background-color:#101820;color:white;margin:0\">b</div></div>",
            ),
            ("<body\n  title=\">\"  bgcolor=#fff>x", "<div style=\"background-color:#fff;\">x"),
            ("<body", "<body"),
            ("<buttons>1 < 2 </ button><!-- x", "<buttons>1 < 2 </ button><!-- x"),
        ] {
            assert_eq!(with_kept_elements(html), kept, "{html}");
        }
        let long = format!("<body title=\"{}\" bgcolor=red>", "é".repeat(TAG_MAX));
        assert!(with_kept_elements(&long).contains("bgcolor=red"));
    }
}
