//! The message that a wait has found, as it is answered, and what such a message must contain.

use std::io;

use serde::Serialize;
use tempmail_mime::{Role, Structure};
use tempmail_store::MessageRow;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AnyOfBuilder, Schema};

use super::budget::PieceWriter;
use super::extraction::Extraction;
use super::full::{Email, EmailContent};
use super::summary::EmailSummary;
use super::texts::{MessageTexts, comparable};

/// What the contents of a message must have, and how it is answered.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct WantedEmail {
    /// A text that it shows, as [`comparable`]; "": any.
    text: String,
    /// Whether it has a one-time code.
    pub(crate) has_code: bool,
    /// Whether it has an action link.
    pub(crate) has_link: bool,
    /// Whether it has an attachment.
    pub(crate) has_attachment: bool,
    /// Whether the answer has the full message in place of its summary.
    pub(crate) full: bool,
}

impl WantedEmail {
    /// Requires a text, ignoring case and the kind of white space.
    pub(crate) fn require_text(&mut self, text: &str) {
        self.text = comparable(text);
    }

    /// Whether every message has what is wanted.
    pub(crate) fn requires_nothing(&self) -> bool {
        self.text.is_empty() && !self.has_code && !self.has_link && !self.has_attachment
    }

    /// Whether a message has what is wanted but for codes and links.
    fn matches(&self, structure: &Structure, texts: &MessageTexts) -> bool {
        let has_attachment = || structure.leaves.iter().any(|leaf| leaf.role == Role::Attachment);
        (!self.has_attachment || has_attachment()) && (self.text.is_empty() || texts.contains(&self.text))
    }

    fn matches_found(&self, found: &Extraction) -> bool {
        (!self.has_code || !found.codes.is_empty()) && (!self.has_link || !found.links.is_empty())
    }
}

/// The message that was waited for, with its codes and links.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundEmail<'a> {
    #[schema(schema_with = email_schema)]
    email: FoundContent<'a>,
    #[serde(flatten)]
    found: &'a Extraction,
    /// The cursor after this message.
    next_since: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FoundContent<'a> {
    Summary(EmailSummary),
    Full(Box<Email<'a>>),
}

/// The summary, or with `full` the full message.
fn email_schema() -> Schema {
    let either = AnyOfBuilder::new()
        .item(Ref::from_schema_name(EmailSummary::name()))
        .item(Ref::from_schema_name(Email::name()))
        .description(Some("The summary, or with `full` the whole message."))
        .build();
    Schema::AnyOf(either)
}

/// Writes the answer with a message as JSON, from its raw data; `false` where it does not have what is wanted.
///
/// # Errors
/// There is not enough memory for it.
pub(super) fn write_found_email(
    raw: &[u8],
    row: &MessageRow,
    wanted: &WantedEmail,
    next_since: &str,
    json: &mut PieceWriter,
) -> io::Result<bool> {
    let structure = Structure::parse(raw);
    let texts = MessageTexts::of(&structure, raw);
    json.set_aside(texts.memory())?;
    if !wanted.matches(&structure, &texts) {
        return Ok(false);
    }
    let found = Extraction::of(row, &texts);
    if !wanted.matches_found(&found) {
        return Ok(false);
    }
    let section = &raw[structure.header.clone()];
    let attachments = if wanted.full { structure.attachments(raw) } else { Vec::new() };
    let email = if wanted.full {
        let content = EmailContent::new(row, section, &attachments, &texts, &found);
        FoundContent::Full(Box::new(Email::new(content, &texts)))
    } else {
        FoundContent::Summary(EmailSummary::from(row))
    };
    // Strings and numbers can be written as JSON: an error is the writer's.
    serde_json::to_writer(json, &FoundEmail { email, found: &found, next_since })?;
    Ok(true)
}
