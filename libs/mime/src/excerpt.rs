//! The beginning of a text, for previews.

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
}
