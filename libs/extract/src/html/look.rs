//! How text looks: whether it is seen, and how much it stands out.

use super::color::{Color, looks_same};
use super::style::{Size, Style};
use crate::text::Emphasis;

/// Type smaller than this, in pixels, is not seen.
const SIZE_MIN: f32 = 2.0;
/// Type from this size on stands out.
const SIZE_LARGE: f32 = 20.0;

/// What an element passes on to those in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) hidden: bool,
    visible: bool,
    size: f32,
    color: Color,
    background: Color,
    bold: bool,
    large: bool,
    spaced: bool,
    pub(super) keeps_lines: bool,
}

/// The look of a document that says nothing.
pub(super) const PLAIN: Look = Look {
    hidden: false,
    visible: true,
    size: 16.0,
    color: Color::Solid([0, 0, 0]),
    background: Color::Solid([255, 255, 255]),
    bold: false,
    large: false,
    spaced: false,
    keeps_lines: false,
};

impl Look {
    /// Applies what is declared of an element.
    pub(super) fn apply(&mut self, name: &str, style: &Style) {
        self.visible = style.visible.unwrap_or(self.visible);
        match name {
            "h1" | "h2" | "h3" => (self.size, self.bold) = (24.0, true),
            "h4" | "b" | "strong" | "th" | "mark" => self.bold = true,
            "big" => self.size *= 1.2,
            "code" | "kbd" | "samp" | "tt" => self.bold = true,
            "pre" => self.keeps_lines = true,
            _ => {}
        }
        match style.size {
            Some(Size::Px(size)) => self.size = size,
            Some(Size::Times(times)) => self.size *= times,
            None => {}
        }
        self.large = self.size >= SIZE_LARGE;
        self.color = style.color.unwrap_or(self.color);
        self.background = match style.background {
            Some(Color::Transparent) | None => self.background,
            Some(background) => background,
        };
        self.bold = style.bold.unwrap_or(self.bold);
        self.spaced = style.spaced.unwrap_or(self.spaced);
        self.keeps_lines = style.keeps_lines.unwrap_or(self.keeps_lines);
    }

    /// Whether text is seen.
    pub(super) fn is_seen(&self) -> bool {
        !self.hidden && self.visible && self.size >= SIZE_MIN && !self.has_color_of_background()
    }

    fn has_color_of_background(&self) -> bool {
        match (self.color, self.background) {
            (Color::Transparent, _) => true,
            (Color::Solid(color), Color::Solid(background)) => looks_same(color, background),
            _ => false,
        }
    }

    /// How much text stands out.
    pub(super) fn emphasis(&self) -> Emphasis {
        if self.large || self.spaced {
            Emphasis::Large
        } else if self.bold {
            Emphasis::Bold
        } else {
            Emphasis::None
        }
    }
}
