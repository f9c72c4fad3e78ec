//! A message as MailHog shows it: whole, with bodies in the encoding that they were sent in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use tempmail_mime::{Leaf, Role, Structure, header_fields};
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use crate::message::PieceWriter;

/// A message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    #[serde(rename = "ID")]
    id: Uuid,
    from: Path<'a>,
    to: [Path<'a>; 1],
    content: Content<'a>,
    created: String,
    /// The parts of a multipart message.
    #[serde(rename = "MIME")]
    mime: Option<Mime<'a>>,
    raw: Raw<'a>,
}

/// An address of the envelope.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Path<'a> {
    relays: Option<()>,
    mailbox: &'a str,
    domain: &'a str,
    params: &'static str,
}

/// A message or a part of one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Content<'a> {
    headers: BTreeMap<Cow<'a, str>, Vec<String>>,
    body: Cow<'a, str>,
    size: usize,
    #[serde(rename = "MIME")]
    mime: Option<()>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mime<'a> {
    parts: Vec<Content<'a>>,
}

/// The envelope and the data, as they were received.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Raw<'a> {
    from: &'a str,
    to: [&'a str; 1],
    data: Cow<'a, str>,
    helo: &'static str,
}

/// Writes a message as JSON, within the memory that `json` holds.
///
/// # Errors
/// There is not enough memory.
pub(super) fn write_message(raw: &[u8], row: &MessageRow, json: &mut PieceWriter) -> io::Result<()> {
    let structure = Structure::parse(raw);
    let header = &raw[structure.header.clone()];
    let mut headers = BTreeMap::<_, Vec<String>>::new();
    for field in header_fields(header) {
        headers.entry(Cow::Borrowed(field.name)).or_default().push(field.unfolded().into_owned());
    }
    json.set_aside(header.len())?;
    let is_multipart = headers
        .iter()
        .any(|(name, values)| name.eq_ignore_ascii_case("content-type") && is_multipart(values.first()));
    let mime = if is_multipart { Some(Mime { parts: parts_of(&structure, raw, json)? }) } else { None };
    let body = without_line_end(&raw[structure.header.end..]);
    let content = Content { headers, body: lossy_text(body, json)?, size: body.len(), mime: None };
    let data = lossy_text(raw, json)?;
    let message = Message {
        id: row.id,
        from: Path::of(&row.sender),
        to: [Path::of(&row.address)],
        content,
        created: timestamp(row.created_at()),
        mime,
        raw: Raw { from: &row.sender, to: [&row.address], data, helo: "" },
    };
    serde_json::to_writer(json, &message)?;
    Ok(())
}

/// What follows the empty line behind a header section.
fn without_line_end(octets: &[u8]) -> &[u8] {
    octets.strip_prefix(b"\r\n").or_else(|| octets.strip_prefix(b"\n")).unwrap_or(octets)
}

fn is_multipart(content_type: Option<&String>) -> bool {
    content_type.is_some_and(|value| value.to_ascii_lowercase().starts_with("multipart/"))
}

/// The leaf parts: clients look for texts and attachments among them, and not below.
fn parts_of<'a>(
    structure: &Structure,
    raw: &'a [u8],
    json: &mut PieceWriter,
) -> io::Result<Vec<Content<'a>>> {
    structure.leaves.iter().map(|leaf| Content::of_part(leaf, raw, json)).collect()
}

impl<'a> Path<'a> {
    fn of(address: &'a str) -> Self {
        let (mailbox, domain) = address.rsplit_once('@').unwrap_or((address, ""));
        Self { relays: None, mailbox, domain, params: "" }
    }
}

impl<'a> Content<'a> {
    /// A part, with the fields that describe it.
    fn of_part(leaf: &Leaf, raw: &'a [u8], json: &mut PieceWriter) -> io::Result<Self> {
        let mut headers = BTreeMap::new();
        let mut describe = |name: &'static str, value: String| {
            headers.insert(Cow::Borrowed(name), vec![value]);
        };
        describe("Content-Type", leaf.content_type_with_charset());
        describe("Content-Transfer-Encoding", leaf.encoding.as_str().to_owned());
        if leaf.role == Role::Attachment {
            let name = leaf.file_name.as_deref().unwrap_or("attachment").replace('"', "_");
            let disposition = if leaf.inline { "inline" } else { "attachment" };
            describe("Content-Disposition", format!("{disposition}; filename=\"{name}\""));
        }
        if let Some(id) = &leaf.content_id {
            describe("Content-Id", format!("<{id}>"));
        }
        let body = &raw[leaf.body.clone()];
        Ok(Self { headers, body: lossy_text(body, json)?, size: body.len(), mime: None })
    }
}

/// Octets as a text, with U+FFFD for what is not UTF-8; a copy is set aside.
///
/// # Errors
/// There is not enough memory.
fn lossy_text<'a>(octets: &'a [u8], json: &mut PieceWriter) -> io::Result<Cow<'a, str>> {
    let text = String::from_utf8_lossy(octets);
    if let Cow::Owned(copy) = &text {
        json.set_aside(copy.len())?;
    }
    Ok(text)
}
