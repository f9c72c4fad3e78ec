//! What elements do to lines and to the elements that are open, and how their text looks: whether it is seen, and how
//! much it stands out.

use super::style::{Color, Size, Style, looks_same};
use crate::text::Emphasis;

/// How an element takes part in the flow of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Inline,
    /// A line of its own.
    Line,
    /// A line of its own, with a blank line before and after.
    Paragraph,
    Cell,
    Item,
}

/// Elements whose text is never shown.
pub(super) fn is_hidden(name: &str) -> bool {
    matches!(
        name,
        "head"
            | "title"
            | "style"
            | "script"
            | "template"
            | "noframes"
            | "datalist"
            | "object"
            | "audio"
            | "video"
            | "canvas"
            | "svg"
            | "math"
            | "iframe"
            | "select"
            | "textarea"
            | "map"
    )
}

/// Elements that have no content and no end.
pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Parts of a table, which ends of other elements do not reach out of.
pub(super) fn is_table_part(name: &str) -> bool {
    matches!(name, "table" | "tbody" | "thead" | "tfoot" | "tr" | "td" | "th" | "caption")
}

pub(super) fn flow(name: &str) -> Flow {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "blockquote" | "pre" | "hr" | "dl" => {
            Flow::Paragraph
        }
        "td" | "th" => Flow::Cell,
        "li" => Flow::Item,
        "html" | "body" | "div" | "table" | "tbody" | "thead" | "tfoot" | "tr" | "caption" | "center"
        | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside" | "address" | "form"
        | "fieldset" | "legend" | "figure" | "figcaption" | "dt" | "dd" | "details" | "summary" | "xmp"
        | "option" | "dialog" | "menu" => Flow::Line,
        _ => Flow::Inline,
    }
}

/// A set of kinds of elements: what an element ends depends on the kinds of those that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    const PARAGRAPH: Self = Self(1);
    const BLOCK: Self = Self(1 << 1);
    pub(super) const TABLE: Self = Self(1 << 2);
    const TABLE_GROUP: Self = Self(1 << 3);
    const ROW: Self = Self(1 << 4);
    pub(super) const CELL: Self = Self(1 << 5);
    const LIST: Self = Self(1 << 6);
    const ITEM: Self = Self(1 << 7);
    const TERMS: Self = Self(1 << 8);
    const TERM: Self = Self(1 << 9);

    /// The kind of an element, if it has one.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "p" => Self::PARAGRAPH,
            "div" | "blockquote" | "center" => Self::BLOCK,
            "table" => Self::TABLE,
            "tbody" | "thead" | "tfoot" => Self::TABLE_GROUP,
            "tr" => Self::ROW,
            "td" | "th" => Self::CELL,
            "ul" | "ol" | "menu" => Self::LIST,
            "li" => Self::ITEM,
            "dl" => Self::TERMS,
            "dt" | "dd" => Self::TERM,
            _ => Self::NONE,
        }
    }

    /// The kinds of both.
    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a kind is in both.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Which open elements the start of `name` ends, up to the nearest of the second kinds.
pub(super) fn implied_ends(name: &str) -> (Kinds, Kinds) {
    let in_cell = Kinds::CELL.or(Kinds::TABLE);
    match name {
        "td" | "th" => (Kinds::CELL, Kinds::ROW.or(Kinds::TABLE)),
        "tr" => (Kinds::ROW.or(Kinds::CELL), Kinds::TABLE),
        "tbody" | "thead" | "tfoot" => (Kinds::TABLE_GROUP.or(Kinds::ROW).or(Kinds::CELL), Kinds::TABLE),
        "li" => (Kinds::ITEM, Kinds::LIST.or(in_cell)),
        "dt" | "dd" => (Kinds::TERM, Kinds::TERMS.or(in_cell)),
        _ if flow(name) != Flow::Inline => (Kinds::PARAGRAPH, Kinds::BLOCK.or(Kinds::ITEM).or(in_cell)),
        _ => (Kinds::NONE, Kinds::NONE),
    }
}

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
