//! The HTML of a message as a document that a browser may show: sanitized, with the images of the message itself, and
//! remote ones where the reader asked for them. What it may load and run is decided by its header fields once more. Its
//! address works once.

mod images;
mod kept;
mod limited;
mod links;
mod sanitizer;
mod style;

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use tempmail_bus::{FailureLimit, RateKey, SharedBus};
use tempmail_mime::{Role, Structure};

use super::texts::body;
use images::InlineImages;

pub(crate) use links::DocumentLink;
pub(super) use sanitizer::HTML_MAX;
use sanitizer::sanitize;

/// Without scripts, forms, frames, fonts and an origin; links open new windows.
const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
    style-src 'unsafe-inline'; img-src data:";
/// The same with remote images.
const POLICY_WITH_REMOTE_IMAGES: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
    style-src 'unsafe-inline'; img-src data: https:";

/// What precedes the sanitized HTML. Mail is written for a light background.
const BEFORE: &str = "<!doctype html><html><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light\"><style>\
    body{margin:12px;background:#fff;color:#111;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\
    img{max-width:100%}</style></head><body>";
const AFTER: &str = "</body></html>";

/// The sanitized HTML of a message.
#[derive(Debug)]
pub(crate) struct Document {
    pub(super) html: String,
    pub(super) remote: bool,
    /// Hosts of remote images, as A-labels, in alphabetical order; whether they are loaded or not.
    pub(crate) remote_hosts: Vec<String>,
    /// In the order of the message.
    pub(crate) links: Vec<DocumentLink>,
    /// Whether some of the HTML is left out, since it is too large or takes too long.
    pub(crate) truncated: bool,
}

impl Document {
    /// The document of a message with this raw data; `None` where it has no HTML.
    pub(crate) fn of_message(raw: &[u8], remote: bool) -> Option<Self> {
        let structure = Structure::parse(raw);
        if structure.leaves.iter().all(|leaf| leaf.role != Role::Html) {
            return None;
        }
        let html = body(&structure, raw, Role::Html);
        Some(sanitize(&html, InlineImages::of(&structure, raw, &html), remote))
    }

    /// The answer that shows it.
    pub(crate) fn into_response(self) -> Response {
        let policy = if self.remote { POLICY_WITH_REMOTE_IMAGES } else { POLICY };
        let mut response = Response::new(Body::from([BEFORE, &self.html, AFTER].concat()));
        let fields = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, policy),
            (REFERRER_POLICY, "no-referrer"),
            // Names of links are not looked up before somebody follows them.
            (HeaderName::from_static("x-dns-prefetch-control"), "off"),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// How long it is remembered that an address was used: longer than it works (60 s), since clocks differ.
const REMEMBERED: Duration = Duration::from_secs(180);

/// Addresses of documents that were used, in all processes; without Redis in this one.
pub(crate) struct UsedDocuments {
    bus: SharedBus,
    limit: FailureLimit,
}

impl UsedDocuments {
    pub(crate) fn new(bus: SharedBus) -> Self {
        Self { bus, limit: FailureLimit::new("document", 1, REMEMBERED) }
    }

    /// Whether an address was not used before; from now on it is.
    pub(crate) async fn record(&self, address: &str) -> bool {
        let key = RateKey::from_parts(&[address.as_bytes()]);
        self.bus.begin_attempt(&self.limit, key).await.is_ok()
    }
}
