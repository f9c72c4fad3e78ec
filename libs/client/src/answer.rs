//! What the server answers. Fields that this version does not know are kept where an answer is handed on whole.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::token::LiveToken;

/// `GET /v1/config`
#[derive(Debug, Clone, Deserialize)]
pub struct ServerConfig {
    /// The system domains in service.
    pub system_domains: Vec<SystemDomain>,
}

/// A system domain.
#[derive(Debug, Clone, Deserialize)]
pub struct SystemDomain {
    /// Its name.
    pub domain: String,
    /// Whether addresses are made there unless another one is requested.
    pub default: bool,
}

/// The summary of a mail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmailSummary {
    /// Its id.
    pub id: String,
    /// The exact recipient.
    pub address: String,
    /// The first address of the From header.
    pub from_email: String,
    /// The Subject.
    pub subject: String,
    /// When it was accepted, in RFC 3339.
    pub created_at: String,
    /// All other fields.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Mail and the cursor behind it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmailList {
    /// Newest first.
    pub emails: Vec<EmailSummary>,
    /// Where to continue; empty where the server named no cursor.
    pub next_since: String,
}

/// A one-time code of a mail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Code {
    /// The code.
    pub code: String,
    /// From 0 to 1.
    pub confidence: f64,
    /// `subject`, `text` or `html`.
    pub source: String,
    /// Why it is taken for a code: an English sentence.
    pub reason: String,
}

/// A link that completes what a mail is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ActionLink {
    /// Its URL, as sent.
    pub url: String,
    /// What it does, as `confirm`.
    pub kind: String,
    /// The text of the link, which the sender chose.
    pub text: String,
    /// Where it leads.
    pub host: String,
    /// Whether it leads to the sender's domain.
    pub host_matches_from: bool,
    /// From 0 to 1.
    pub confidence: f64,
    /// `text` or `html`.
    pub source: String,
    /// Why it is taken for such a link: an English sentence.
    pub reason: String,
}

/// Codes and links of a mail, best first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Extraction {
    /// Its codes.
    #[serde(default)]
    pub codes: Vec<Code>,
    /// Its links.
    #[serde(default)]
    pub links: Vec<ActionLink>,
}

/// The mail that a wait found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundEmail {
    /// Its summary; with `full`, the whole mail.
    pub email: EmailSummary,
    /// Its codes and links.
    #[serde(flatten)]
    pub extraction: Extraction,
    /// The cursor behind it.
    pub next_since: String,
}

/// `GET /v1/email/{id}`
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Email {
    /// Its id.
    pub id: String,
    /// The exact recipient.
    pub address: String,
    /// The From header, decoded.
    pub from: String,
    /// The To header, decoded.
    pub to: Vec<String>,
    /// The Subject.
    pub subject: String,
    /// The plain text; empty where the mail has none.
    pub text_body: String,
    /// The HTML as received.
    pub html_body: String,
    /// The header section.
    pub headers: Vec<HeaderField>,
    /// Its attachments, without their data.
    pub attachments: Vec<Attachment>,
    /// When it was accepted, in RFC 3339.
    pub created_at: String,
    /// When it expires, in RFC 3339.
    pub expires_at: String,
    /// The text as it is shown: the plain text, or the HTML without what is hidden.
    #[serde(default)]
    pub shown_text: String,
    /// Its codes and links.
    #[serde(flatten)]
    pub extraction: Extraction,
    /// All other fields.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A field of the header section.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Its value, decoded.
    pub value: String,
}

/// An attachment, without its data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attachment {
    /// Its place among the attachments, from 0.
    pub index: u32,
    /// The file name that the sender chose.
    pub filename: Option<String>,
    /// The media type that the sender chose.
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    /// All other fields.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A token that may wait, read and delete at one address, for a while.
#[derive(Debug, Clone)]
pub struct MintedToken {
    /// The token.
    pub token: LiveToken,
    /// The cursor of the moment at which it was made.
    pub since: String,
}
