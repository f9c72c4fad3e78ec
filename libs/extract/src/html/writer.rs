//! Text with lines, as HTML collapses its spaces.

use std::ops::Range;

use crate::text::Emphasis;
use crate::text::chars::Normalizer;

/// What becomes of characters that look alike or are not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Characters {
    /// They stay.
    AsWritten,
    /// They take the form in which codes are looked for.
    Normalized,
}

/// What separates the next text from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Cell,
    Line,
    Paragraph,
}

/// Writes text up to a limit.
#[derive(Debug)]
pub(super) struct Writer {
    text: String,
    limit: usize,
    characters: Characters,
    normalizer: Normalizer,
    gap: Gap,
    /// Lines that were broken one by one since the last text.
    breaks: usize,
    is_item: bool,
    emphasis: Vec<(Range<usize>, Emphasis)>,
    pub(super) cut: bool,
}

impl Writer {
    pub(super) fn new(limit: usize, characters: Characters) -> Self {
        Self {
            text: String::new(),
            limit,
            characters,
            normalizer: Normalizer::default(),
            gap: Gap::None,
            breaks: 0,
            is_item: false,
            emphasis: Vec::new(),
            cut: false,
        }
    }

    /// Where the next text will be.
    pub(super) fn end(&self) -> usize {
        self.text.len()
    }

    /// The next text is at least so far from the last.
    pub(super) fn separate(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
        if gap > Gap::None {
            self.normalizer = Normalizer::default();
        }
    }

    /// A line break, which counts each time.
    pub(super) fn break_line(&mut self) {
        if self.gap >= Gap::Line {
            self.breaks += 1;
        }
        self.separate(Gap::Line);
        if self.breaks > 0 {
            self.separate(Gap::Paragraph);
        }
    }

    /// The next text is an item of a list.
    pub(super) fn begin_item(&mut self) {
        self.separate(Gap::Line);
        self.is_item = true;
    }

    /// Adds text of an element; returns where it begins, if something was added.
    pub(super) fn write(&mut self, text: &str, keeps_lines: bool, emphasis: Emphasis) -> Option<usize> {
        let mut first = None;
        for c in text.chars() {
            if c.is_ascii_whitespace() {
                if keeps_lines && c == '\n' {
                    self.break_line();
                } else {
                    self.separate(Gap::Space);
                }
                continue;
            }
            let forms = match self.characters {
                Characters::Normalized => self.normalizer.next(c),
                Characters::AsWritten => [None, Some(if c.is_control() { ' ' } else { c })],
            };
            for c in forms.into_iter().flatten() {
                if c == ' ' {
                    self.separate(Gap::Space);
                    continue;
                }
                if !self.write_gap(c.len_utf8()) {
                    return first;
                }
                let at = self.text.len();
                first = first.or(Some(at));
                self.text.push(c);
                self.emphasize(at, emphasis);
            }
        }
        first
    }

    fn emphasize(&mut self, at: usize, emphasis: Emphasis) {
        if emphasis == Emphasis::None {
            return;
        }
        let end = self.text.len();
        match self.emphasis.last_mut() {
            Some((range, last)) if *last == emphasis && range.end + 1 >= at => range.end = end,
            _ => self.emphasis.push((at..end, emphasis)),
        }
    }

    /// Writes what separates the next text, if it fits with `len` octets more.
    fn write_gap(&mut self, len: usize) -> bool {
        let gap = if self.text.is_empty() { "" } else { self.gap_text() };
        let item = if self.is_item { "- " } else { "" };
        if self.cut || self.text.len() + gap.len() + item.len() + len > self.limit {
            self.cut = true;
            return false;
        }
        self.text.push_str(gap);
        self.text.push_str(item);
        (self.gap, self.breaks, self.is_item) = (Gap::None, 0, false);
        true
    }

    fn gap_text(&self) -> &'static str {
        match self.gap {
            Gap::None => "",
            Gap::Space => " ",
            Gap::Cell => "\t",
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        }
    }

    /// The text, and what of it stands out.
    pub(super) fn finish(self) -> (String, Vec<(Range<usize>, Emphasis)>) {
        (self.text, self.emphasis)
    }
}
