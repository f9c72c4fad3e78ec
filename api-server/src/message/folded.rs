//! Texts as they are compared: whatever their case, canonical equivalents alike (Unicode 3.13, D145), and without
//! characters that nobody sees.

use caseless::Caseless as _;
use tempmail_mime::text::is_ignorable;
use unicode_normalization::UnicodeNormalization as _;

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
