//! What a person looks for in a page.

use std::fmt;

use serde_json::{Value, json};

/// Finds the first visible element of `[kind, value, text]`; while a dialog is open only what is in it, or in a notice
/// above it. A name is that of assistive technology, as far as the page gives names.
pub(super) const FIND: &str = r#"
const [kind, value, text] = arguments;
const ROLES = {
  button: "button:not([role]), summary", link: "a[href]", tab: "[role=tab]", dialog: "dialog[open]",
  heading: "h1, h2, h3", combobox: "select", searchbox: "input[type=search]",
  textbox: "input:not([type]), input[type=text], input[type=email], input[type=password], input[type=url], [role=textbox]",
};
const folded = (node) => (node?.textContent ?? "").replace(/\s+/g, " ").trim();
const nameOf = (node) => {
  const label = node.getAttribute("aria-label");
  if (label) return label;
  const ids = node.getAttribute("aria-labelledby");
  if (ids) return ids.split(" ").map((id) => folded(document.getElementById(id))).join(" ");
  return node.labels?.length ? folded(node.labels[0]) : folded(node);
};
const matches = {
  role: (node) => nameOf(node) === text,
  css: () => true,
  containing: (node) => folded(node).includes(text),
}[kind];
const top = [...document.querySelectorAll("dialog[open]")].at(-1);
const isReachable = (node) => !top || top.contains(node) || node.closest("[popover]");
const candidates = document.querySelectorAll(kind === "role" ? ROLES[value] : value);
return [...candidates].find((node) => isReachable(node) && node.checkVisibility() && matches(node)) ?? null;
"#;

/// An element of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// By its role and its whole name.
    Role(&'static str, &'a str),
    /// By a CSS selector.
    Css(&'a str),
    /// By a CSS selector and a part of its text.
    Containing(&'a str, &'a str),
}

impl Target<'_> {
    /// The arguments of [`FIND`].
    pub(super) fn arguments(self) -> Vec<Value> {
        match self {
            Self::Role(role, name) => vec![json!("role"), json!(role), json!(name)],
            Self::Css(selector) => vec![json!("css"), json!(selector), json!("")],
            Self::Containing(selector, text) => vec![json!("containing"), json!(selector), json!(text)],
        }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role, name) => write!(f, "the {role} {name:?}"),
            Self::Css(selector) => write!(f, "`{selector}`"),
            Self::Containing(selector, text) => write!(f, "`{selector}` with {text:?}"),
        }
    }
}

/// A button, or what opens a fold.
pub fn button(name: &str) -> Target<'_> {
    Target::Role("button", name)
}

/// A link.
pub fn link(name: &str) -> Target<'_> {
    Target::Role("link", name)
}

/// A tab.
pub fn tab(name: &str) -> Target<'_> {
    Target::Role("tab", name)
}

/// An open dialog.
pub fn dialog(name: &str) -> Target<'_> {
    Target::Role("dialog", name)
}

/// A heading.
pub fn heading(name: &str) -> Target<'_> {
    Target::Role("heading", name)
}

/// A field for a text.
pub fn textbox(name: &str) -> Target<'_> {
    Target::Role("textbox", name)
}

/// A field for a search.
pub fn searchbox(name: &str) -> Target<'_> {
    Target::Role("searchbox", name)
}

/// A choice between options.
pub fn combobox(name: &str) -> Target<'_> {
    Target::Role("combobox", name)
}

/// What a CSS selector finds.
pub fn css(selector: &str) -> Target<'_> {
    Target::Css(selector)
}

/// What a CSS selector finds that has this text in it.
pub fn containing<'a>(selector: &'a str, text: &'a str) -> Target<'a> {
    Target::Containing(selector, text)
}
