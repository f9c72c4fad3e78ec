//! What elements do to lines and to the elements that are open.

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
        | "fieldset" | "legend" | "figure" | "figcaption" | "dt" | "dd" | "details" | "summary"
        | "option" | "dialog" | "menu" => Flow::Line,
        _ => Flow::Inline,
    }
}

/// Which open elements the start of `name` ends, up to the nearest of the second list.
pub(super) fn implied_ends(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "td" | "th" => (&["td", "th"], &["tr", "table"]),
        "tr" => (&["tr", "td", "th"], &["table"]),
        "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot", "tr", "td", "th"], &["table"]),
        "li" => (&["li"], &["ul", "ol", "menu", "td", "th", "table"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl", "td", "th", "table"]),
        _ if flow(name) != Flow::Inline => {
            (&["p"], &["div", "td", "th", "table", "li", "blockquote", "center"])
        }
        _ => (&[], &[]),
    }
}
