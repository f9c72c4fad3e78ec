//! The texts of a message, decoded, and what a client may look for in them.

use std::borrow::Cow;

use tempmail_extract::shown_text;
use tempmail_mime::text::is_visible;
use tempmail_mime::{Excerpt, Role, Structure};
use tempmail_model::limits::SHOWN_TEXT_MAX;

use super::folded::folded;

/// Bytes of HTML in which codes and links are looked for.
const HTML_EXAMINED: usize = 1 << 20;
/// Copies of it in memory meanwhile.
const EXTRACTION_COPIES: usize = 2;

/// The plain text and the HTML of a message.
#[derive(Debug)]
pub(crate) struct MessageTexts {
    /// "" where the message has none.
    pub(crate) text: String,
    /// "" where the message has none.
    pub(crate) html: String,
}

impl MessageTexts {
    pub(crate) fn of(structure: &Structure, raw: &[u8]) -> Self {
        Self { text: body(structure, raw, Role::Text), html: body(structure, raw, Role::Html) }
    }

    /// Bytes in memory, with those that are needed to look for codes and links.
    pub(crate) fn memory(&self) -> usize {
        self.text.len() + self.html.len() + EXTRACTION_COPIES * self.html.len().min(HTML_EXAMINED)
    }

    /// What a reader sees, up to 256 KiB: the plain text, or where there is none, the HTML as it is shown.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        if is_visible(&self.text) { prefix(&self.text).into() } else { self.shown_html().into() }
    }

    /// Whether the plain text or the HTML as it is shown contains a text, which is [`comparable`].
    pub(super) fn contains(&self, part: &str) -> bool {
        comparable(prefix(&self.text)).contains(part) || comparable(&self.shown_html()).contains(part)
    }

    fn shown_html(&self) -> String {
        shown_text(&self.html, SHOWN_TEXT_MAX).text
    }
}

/// A text as it is compared: folded, each white space as one space, without control and ignorable characters.
pub(super) fn comparable(text: &str) -> String {
    let mut shown = Excerpt::new(text.len());
    shown.push(text);
    folded(&String::from(shown))
}

/// The text of all parts with a role, separated by line breaks; "" where there are none.
pub(super) fn body(structure: &Structure, raw: &[u8], role: Role) -> String {
    let mut text = String::new();
    for leaf in structure.leaves.iter().filter(|leaf| leaf.role == role) {
        let part = leaf.text(raw);
        if text.is_empty() {
            text = part.into_owned();
        } else {
            if !text.ends_with('\n') {
                text.push_str("\r\n");
            }
            text.push_str(&part);
        }
    }
    text
}

/// The first 256 KiB of a text.
fn prefix(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_TEXT_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, html: &str) -> MessageTexts {
        MessageTexts { text: text.into(), html: html.into() }
    }

    #[test]
    fn shows_the_plain_text_or_else_the_html_without_markup() {
        assert_eq!(texts("plain", "<p>rich").shown(), "plain");
        assert_eq!(texts("", "<style>p{}</style><p>Your <b>code</b>").shown(), "Your code");
        assert_eq!(texts("\u{200b}\r\n", "<p>rich").shown(), "rich");
        assert_eq!(texts("", "").shown(), "");
    }

    #[test]
    fn finds_text_in_either_form_whatever_its_case_and_white_space() {
        let both = texts(
            "Re\u{200d}set\r\n  your PASS\u{200b}WORD",
            "<p>Confirm &amp; <b>go</b><style>hidden</style>",
        );
        for (part, expected) in [
            ("reset your password", true),
            ("confirm & go", true),
            ("hidden", false),
            ("<b>", false),
            ("", true),
            ("pass\u{ad}word", true),
            ("and\u{200c}go", false),
        ] {
            assert_eq!(both.contains(&comparable(part)), expected, "{part}");
        }
    }

    #[test]
    fn looks_at_the_first_256_kib() {
        let long = format!("{}é late", "x".repeat(SHOWN_TEXT_MAX - 1));
        assert_eq!(texts(&long, "").shown().len(), SHOWN_TEXT_MAX - 1);
        assert!(!texts(&long, &long).contains("late"));
    }
}
