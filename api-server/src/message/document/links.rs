//! The links of sanitized HTML: what they show, and where they go.

use serde::Serialize;
use tempmail_mime::{Excerpt, html_to_text};
use url::Url;
use utoipa::ToSchema;

/// Links that are listed.
const LINKS_MAX: usize = 500;
/// Characters of a link's text.
const TEXT_MAX: usize = 200;

/// A link of a document.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct DocumentLink {
    /// What it shows, in up to 200 characters.
    pub(crate) text: String,
    pub(crate) href: String,
    /// The host, in Unicode; `null` for an address of mail or a telephone number.
    host: Option<String>,
    /// The host as it is looked up.
    ascii_host: Option<String>,
}

/// The links of HTML that the sanitizer wrote: names are in lower case, and values in double quotes.
pub(super) fn links_of(html: &str) -> Vec<DocumentLink> {
    let mut links = Vec::new();
    let mut rest = html;
    while links.len() < LINKS_MAX
        && let Some(at) = rest.find("<a ")
    {
        rest = &rest[at + 3..];
        let (attributes, after) = split_tag(rest);
        rest = after;
        let content = &after[..after.find("</a>").unwrap_or(after.len())];
        let link = attribute(attributes, "href").and_then(|href| link(&unescaped(href), content));
        links.extend(link);
    }
    links
}

fn link(href: &str, content: &str) -> Option<DocumentLink> {
    let url = Url::parse(href).ok()?;
    let mut text = Excerpt::new(TEXT_MAX);
    html_to_text(content, &mut text);
    let ascii_host = url.host_str().map(str::to_owned);
    let host = ascii_host.as_deref().map(|host| idna::domain_to_unicode(host).0);
    Some(DocumentLink { text: text.into(), href: href.to_owned(), host, ascii_host })
}

/// The attributes of a tag, and what follows it.
fn split_tag(html: &str) -> (&str, &str) {
    let mut is_quoted = false;
    for (at, byte) in html.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'>' if !is_quoted => return (&html[..at], &html[at + 1..]),
            _ => {}
        }
    }
    (html, "")
}

/// The value of an attribute.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    while let Some((before, after)) = rest.split_once("=\"") {
        let (value, next) = after.split_once('"')?;
        if before.trim_start() == name {
            return Some(value);
        }
        rest = next;
    }
    None
}

/// Text whose special characters the sanitizer wrote as references.
fn unescaped(text: &str) -> String {
    let text =
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&nbsp;", "\u{a0}");
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_links_with_their_hosts() {
        let html = "<p><a href=\"https://example.com/?a=1&amp;b=2\" rel=\"x\">Go <b>here</b> &amp; there</a> \
            <a title=\"<a href=\" href=\"https://xn--pple-43d.com/\">apple.com</a><a href=\"mailto:a@b.example\">m</a>\
            <a name=\"x\">no link</a></p>";
        let link = |text: &str, href: &str, host: Option<&str>, ascii_host: Option<&str>| DocumentLink {
            text: text.into(),
            href: href.into(),
            host: host.map(str::to_owned),
            ascii_host: ascii_host.map(str::to_owned),
        };
        assert_eq!(
            links_of(html),
            [
                link(
                    "Go here & there",
                    "https://example.com/?a=1&b=2",
                    Some("example.com"),
                    Some("example.com")
                ),
                link(
                    "apple.com",
                    "https://xn--pple-43d.com/",
                    Some("\u{430}pple.com"),
                    Some("xn--pple-43d.com")
                ),
                link("m", "mailto:a@b.example", None, None),
            ]
        );
    }

    #[test]
    fn bounds_what_it_lists() {
        let html = "<a href=\"https://a.example/\">x</a>".repeat(2 * LINKS_MAX);
        assert_eq!(links_of(&html).len(), LINKS_MAX);
        assert!(links_of("<a href=\"").is_empty() && links_of("<a ").is_empty());
    }
}
