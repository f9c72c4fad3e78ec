//! The bodies of a message with the links and codes in them.

use serde::Serialize;
use tempmail_extract::{Message, Source, extract};

use crate::message::DocumentLink;

/// Links of a text that are listed, and bytes of one.
const LINKS_MAX: usize = 500;
const LINK_MAX: usize = 2_048;

/// A body.
#[derive(Debug, Default, Serialize)]
pub(super) struct Content {
    links: Vec<Link>,
    codes: Vec<Code>,
    pub(super) body: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Link {
    href: String,
    text: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Code {
    value: String,
}

impl Content {
    /// The text body of a message with this subject.
    pub(super) fn of_text(subject: &str, body: String) -> Self {
        let message = Message { subject, text: Some(&body), ..Message::default() };
        Self { links: links(&body), codes: codes(&message, Source::Text), body }
    }

    /// The HTML body of a message with this subject, with the links of its document.
    pub(super) fn of_html(subject: &str, body: String, links: Vec<DocumentLink>) -> Self {
        let message = Message { subject, html: Some(&body), ..Message::default() };
        let links = links.into_iter().map(|link| Link { href: link.href, text: link.text });
        Self { links: links.collect(), codes: codes(&message, Source::Html), body }
    }
}

/// The codes that stand in the body.
fn codes(message: &Message<'_>, source: Source) -> Vec<Code> {
    let body = match source {
        Source::Html => message.html,
        Source::Subject | Source::Text => message.text,
    };
    let body = body.unwrap_or_default();
    let found = extract(message).codes.into_iter();
    // One that the subject has, too, may be reported of that.
    let of_body = found.filter(|code| code.source == source || body.contains(&code.code));
    of_body.map(|code| Code { value: code.code }).collect()
}

/// The addresses of web pages in a text.
fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = text;
    while links.len() < LINKS_MAX
        && let Some(at) = rest.find("http")
    {
        rest = &rest[at..];
        if rest.starts_with("http://") || rest.starts_with("https://") {
            let end = rest.find(|c: char| c.is_whitespace() || "<>\"".contains(c)).unwrap_or(rest.len());
            let (link, after) = rest.split_at(end);
            rest = after;
            let link = link.trim_end_matches(|c: char| ".,;:!?)]}'".contains(c));
            if link.len() <= LINK_MAX {
                links.push(Link { href: link.to_owned(), text: link.to_owned() });
            }
        } else {
            rest = &rest["http".len()..];
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_and_codes_of_a_text() {
        let text =
            "Your verification code is 482913.\r\nOr follow https://shop.example/v?t=1. (http://b.example)";
        let content = Content::of_text("Sign in", text.into());
        let hrefs: Vec<_> = content.links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(hrefs, ["https://shop.example/v?t=1", "http://b.example"]);
        assert_eq!(content.codes, [Code { value: "482913".into() }]);
    }

    #[test]
    fn finds_the_codes_of_html() {
        let html = "<p>Your verification code is <b>482913</b></p>";
        let content = Content::of_html("482913 is your verification code", html.into(), Vec::new());
        assert_eq!(content.codes, [Code { value: "482913".into() }]);
        assert!(Content::default().codes.is_empty() && links("http https:/x httphttp").is_empty());
    }
}
