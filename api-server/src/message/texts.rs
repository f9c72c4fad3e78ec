//! The texts of a message, decoded, and what a client may look for in them. Texts are compared whatever their case,
//! canonical equivalents alike (Unicode 3.13, D145), and without characters that nobody sees.

use std::borrow::Cow;

use caseless::Caseless as _;
use tempmail_extract::shown_text;
use tempmail_mime::text::{is_ignorable, is_visible};
use tempmail_mime::{Excerpt, Role, Structure};
use tempmail_model::limits::SHOWN_TEXT_MAX;
use unicode_normalization::UnicodeNormalization as _;

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

/// Folds a text for comparison: fold both the text and the part that is looked for in it. Case is folded in full:
/// "STRASSE" is "Straße". Letters are composed, so that "cafe" is no part of "café".
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().filter(|c| !is_ignorable(*c)).nfd().default_case_fold().nfc().collect()
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

    #[test]
    fn folds_case_and_canonical_equivalents() {
        for (one, other) in [
            ("CAFE\u{301}", "caf\u{e9}"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("\u{212b}", "a\u{30a}"),
            ("\u{1100}\u{1161}", "\u{ac00}"),
            ("q\u{307}\u{323}", "Q\u{323}\u{307}"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        assert!(!folded("cafe\u{301}").contains(&folded("Cafe")));
        assert_eq!(folded("Ver\u{ad}I\u{200b}fy\u{feff} Ä\u{fe0f}"), "verify ä");
        assert_ne!(folded("ﬁ"), folded("\u{fb00}"), "compatibility is no equivalence");
    }
}
