//! How much of a message is looked at; all of them are documented in `docs/extraction.md`.

/// Characters of the subject.
pub(crate) const SUBJECT_CHARS: usize = 1_000;
/// Octets of the text body.
pub(crate) const TEXT_MAX: usize = 256 * 1024;
/// Octets of the HTML body.
pub(crate) const HTML_MAX: usize = 1024 * 1024;
/// Octets of the text that the HTML body shows.
pub(crate) const SHOWN_MAX: usize = 256 * 1024;
/// Attributes of an element.
pub(crate) const ATTRIBUTES_MAX: usize = 100;
/// Octets of a `style` attribute.
pub(crate) const DECLARATIONS_MAX: usize = 4 * 1024;
/// Elements inside one another; what is nested deeper counts to the last of them.
pub(crate) const DEPTH_MAX: usize = 256;
/// Rules of style sheets.
pub(crate) const RULES_MAX: usize = 2_000;
/// Comparisons of a rule with an element, in a document; elements that are alike are compared once.
pub(crate) const COMPARISONS_MAX: usize = 200_000;
/// Links of a part.
pub(crate) const LINKS_MAX: usize = 1_000;
/// Characters of a link's address, all ASCII.
pub(crate) const URL_MAX: usize = 2_048;
/// Characters of a link's text that are returned.
pub(crate) const LINK_TEXT_CHARS: usize = 200;
/// Candidates of a part that are judged.
pub(crate) const CANDIDATES_MAX: usize = 2_000;
/// Codes that are returned.
pub(crate) const CODES_MAX: usize = 4;
/// Links that are returned.
pub(crate) const ACTION_LINKS_MAX: usize = 8;

/// The longest start of `text` that has at most `max` octets.
pub(crate) fn prefix(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
