//! The beginning of a text, for previews.

use crate::text::printable;

/// The first characters of the pushed text as one line: white space is folded, control characters
/// are removed.
#[derive(Debug, Clone)]
pub struct Excerpt {
    text: String,
    /// Characters that may be added.
    remaining: usize,
    /// Whether white space precedes the next character.
    pending_space: bool,
}

impl Excerpt {
    /// An empty excerpt of at most `max` characters.
    pub fn new(max: usize) -> Self {
        Self { text: String::new(), remaining: max, pending_space: false }
    }

    /// Adds the next piece of text, as far as it fits.
    pub fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            if self.remaining == 0 {
                return;
            }
            if c.is_whitespace() {
                self.pending_space = !self.text.is_empty();
            } else if let Some(c) = printable(c) {
                if std::mem::take(&mut self.pending_space) {
                    self.text.push(' ');
                    self.remaining -= 1;
                }
                if self.remaining > 0 {
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
        assert_eq!(excerpt(&["éé", "éé"], 3), (true, "ééé".into()));
        assert_eq!(excerpt(&["a b"], 2), (true, "a ".into()));
        assert_eq!(excerpt(&["a"], 0), (true, String::new()));
    }
}
