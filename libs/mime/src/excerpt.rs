//! The first words of a text.

use crate::text::printable;

/// The first characters of what is pushed, as one line: white space folded, control
/// characters left out.
#[derive(Debug, Clone)]
pub struct Excerpt {
    text: String,
    /// Characters that may follow.
    room: usize,
    gap: bool,
}

impl Excerpt {
    /// One of at most `max` characters.
    pub fn new(max: usize) -> Self {
        Self { text: String::new(), room: max, gap: false }
    }

    /// Takes what there is room for of the next piece of text.
    pub fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            if self.room == 0 {
                return;
            }
            if c.is_whitespace() {
                self.gap = !self.text.is_empty();
            } else if let Some(c) = printable(c) {
                if std::mem::take(&mut self.gap) {
                    self.text.push(' ');
                    self.room -= 1;
                }
                if self.room > 0 {
                    self.text.push(c);
                    self.room -= 1;
                }
            }
        }
    }

    /// Whether nothing more fits.
    pub fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Whether there is nothing to see so far.
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
    fn white_space_is_folded_and_the_rest_cut() {
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
