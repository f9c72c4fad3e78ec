//! Text of strangers, without what a terminal or a reader would obey.

use std::fmt::Write as _;

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

/// A text in which every character that is not shown as itself is escaped: control characters, and those that hide
/// text or change its order. Line breaks, too: for a line of its own.
pub fn escaped_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for text of several lines: line feeds and tabs stay, and carriage returns before a line feed go.
pub fn escaped_text(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), is_layout)
}

/// A JSON document in which the same characters are escaped as in JSON, so that its values stay as they are. Line feeds
/// and tabs stay: strings have none.
pub fn escaped_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for character in document.chars() {
        if is_hidden(character) && !is_layout(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // To a string it never fails.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The text without characters that are not shown, and whether it had any. Line feeds and tabs stay.
pub fn without_hidden(text: &str) -> (String, bool) {
    let text = text.replace("\r\n", "\n");
    let kept: String =
        text.chars().filter(|&character| is_layout(character) || !is_hidden(character)).collect();
    let has_hidden = kept.len() != text.len();
    (kept, has_hidden)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) && !stays(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Line feeds and tabs.
fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

/// Whether a character is not shown as itself: C0, DEL and C1, which terminals obey, and [invisible](is_invisible) ones.
fn is_hidden(character: char) -> bool {
    character.is_control() || is_invisible(character)
}

/// Characters without a shape of their own that hide text or change its order: what is default-ignorable in Unicode,
/// but for joiners and the variation selectors of emoji; line and paragraph separators, and annotations.
fn is_invisible(character: char) -> bool {
    match character {
        '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => false,
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => true,
        _ => CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(escaped_line("bücher\u{1b}[31m\n\u{202e}cod"), "bücher\\u{1b}[31m\\n\\u{202e}cod");
        assert_eq!(escaped_text("a\tb\r\nc\rd\u{9b}2J"), "a\tb\nc\\rd\\u{9b}2J");
        assert_eq!(
            escaped_json("{\n\"a\": \"\u{7f}\u{202e}\u{e0041}ü\"}"),
            "{\n\"a\": \"\\u007f\\u202e\\udb40\\udc41ü\"}"
        );
        assert_eq!(escaped_line("日本語 العربية हिन्दी 👩‍👩‍👧"), "日本語 العربية हिन्दी 👩‍👩‍👧");
    }

    #[test]
    fn leaves_out_what_nobody_sees_and_says_so() {
        let tags: String =
            "ignore".chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
        assert_eq!(without_hidden(&format!("hello{tags}\u{200b}")), ("hello".to_owned(), true));
        assert_eq!(without_hidden("hello\r\nyou 👩‍👩‍👧"), ("hello\nyou 👩‍👩‍👧".to_owned(), false));
    }
}
