//! The one-time codes and action links of a message, as clients see them.

use serde::Serialize;
use tempmail_extract::{ActionLink, Code, Message, extract};
use tempmail_store::MessageRow;
use utoipa::ToSchema;

use super::texts::MessageTexts;

/// What was found in a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Extraction {
    /// Best first.
    pub(super) codes: Vec<CodeElement>,
    /// Best first.
    pub(super) links: Vec<LinkElement>,
}

/// A one-time code: what proves a person or a device now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CodeElement {
    /// 4 to 12 of `A-Z a-z 0-9 -`.
    code: String,
    /// From 0.5 to 0.99.
    confidence: f32,
    /// `subject`, `text` or `html`.
    source: &'static str,
    /// Why it is one, in English.
    reason: &'static str,
}

/// A link that completes what the mail is about.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LinkElement {
    /// Absolute http or https, as it was sent.
    url: String,
    /// `confirm`, `reset_password`, `sign_in`, `accept_invitation`, `unlock`, `confirm_unsubscribe` or
    /// `secure_account`.
    kind: &'static str,
    /// What the link shows.
    text: String,
    /// Where it goes.
    host: String,
    /// Whether the host and the author have the same registrable domain.
    host_matches_from: bool,
    /// From 0.5 to 0.99.
    confidence: f32,
    /// `html` or `text`.
    source: &'static str,
    /// Why it is one, in English.
    reason: &'static str,
}

impl Extraction {
    /// Looks at the subject and the texts of a message.
    pub(super) fn of(row: &MessageRow, texts: &MessageTexts) -> Self {
        let part = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let found = extract(&Message {
            subject: &row.subject,
            text: part(&texts.text),
            html: part(&texts.html),
            from_domain: row.from_email.rsplit_once('@').map(|(_, domain)| domain),
        });
        Self {
            codes: found.codes.into_iter().map(CodeElement::from).collect(),
            links: found.links.into_iter().map(LinkElement::from).collect(),
        }
    }
}

impl From<Code> for CodeElement {
    fn from(Code { code, confidence, source, reason }: Code) -> Self {
        Self { code, confidence, source: source.as_str(), reason }
    }
}

impl From<ActionLink> for LinkElement {
    fn from(link: ActionLink) -> Self {
        let ActionLink { url, kind, text, host, host_matches_from, confidence, source, reason } = link;
        let (kind, source) = (kind.as_str(), source.as_str());
        Self { url, kind, text, host, host_matches_from, confidence, source, reason }
    }
}
