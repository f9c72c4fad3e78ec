//! The full message.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use tempmail_mime::{Attachment, Structure, decode_header, header_fields, parse_addresses};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{MessageRow, Summary};
use utoipa::ToSchema;
use uuid::Uuid;

use super::budget::PieceWriter;
use super::extraction::{CodeElement, Extraction, LinkElement};
use super::texts::MessageTexts;
use crate::http::error::Surface;

/// What `/v1` and `/api` both show of the full message.
#[derive(Serialize, ToSchema)]
pub(super) struct EmailContent<'a> {
    id: Uuid,
    address: &'a str,
    sender: &'a str,
    from: &'a str,
    from_email: &'a str,
    to: Vec<String>,
    #[serde(flatten)]
    #[schema(inline)]
    summary: Summary,
    /// The plain text, with line feeds; empty where the message has none.
    text_body: &'a str,
    /// As received: sanitize it before a browser shows it.
    html_body: &'a str,
    headers: Vec<HeaderField<'a>>,
    attachments: Vec<AttachmentElement<'a>>,
    expires_at: String,
    /// The one-time codes that were found, best first.
    codes: &'a [CodeElement],
    /// The action links that were found, best first.
    links: &'a [LinkElement],
}

/// The full message, as `/v1` shows it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Email<'a> {
    #[serde(flatten)]
    content: EmailContent<'a>,
    /// As `text_body`.
    text: &'a str,
    /// As `html_body`.
    html: &'a str,
    /// What a reader sees, up to 256 KiB: the plain text, or where there is none, the HTML as it is shown.
    shown_text: Cow<'a, str>,
}

/// The full message, as `/api` shows it.
#[derive(Serialize, ToSchema)]
pub(crate) struct FullMessage<'a> {
    #[serde(flatten)]
    content: EmailContent<'a>,
    is_read: bool,
}

/// A field of the header section, in the order of the message.
#[derive(Serialize, ToSchema)]
struct HeaderField<'a> {
    name: &'a str,
    value: String,
}

/// An attachment, without its data.
#[derive(Serialize, ToSchema)]
struct AttachmentElement<'a> {
    index: usize,
    filename: Option<&'a str>,
    content_type: &'a str,
    size: usize,
    content_id: Option<&'a str>,
    inline: bool,
}

/// Writes the full message as JSON, from its raw data.
///
/// # Errors
/// There is not enough memory for it.
pub(super) fn write_full_message(
    raw: &[u8],
    row: &MessageRow,
    surface: Surface,
    json: &mut PieceWriter,
) -> io::Result<()> {
    let structure = Structure::parse(raw);
    let texts = MessageTexts::of(&structure, raw);
    json.set_aside(texts.memory())?;
    let found = Extraction::of(row, &texts);
    let section = &raw[structure.header.clone()];
    let attachments = structure.attachments(raw);
    let content = EmailContent::new(row, section, &attachments, &texts, &found);
    // Strings and numbers can be written as JSON: an error is the writer's.
    match surface {
        Surface::Api => serde_json::to_writer(json, &FullMessage { content, is_read: row.is_read })?,
        Surface::V1 => serde_json::to_writer(json, &Email::new(content, &texts))?,
    }
    Ok(())
}

impl<'a> Email<'a> {
    /// `content` is of the message with these texts.
    pub(super) fn new(content: EmailContent<'a>, texts: &'a MessageTexts) -> Self {
        Self { content, text: &texts.text, html: &texts.html, shown_text: texts.shown() }
    }
}

impl<'a> EmailContent<'a> {
    /// The content of a message, of which `section` is the header section, and in which this was found.
    pub(super) fn new(
        row: &'a MessageRow,
        section: &'a [u8],
        attachments: &'a [Attachment],
        texts: &'a MessageTexts,
        found: &'a Extraction,
    ) -> Self {
        let to = header_fields(section).filter(|field| field.name.eq_ignore_ascii_case("to"));
        let to = to.flat_map(|field| parse_addresses(field.value)).map(|address| address.to_string());
        let headers = header_fields(section)
            .map(|field| HeaderField { name: field.name, value: decode_header(field.value) })
            .collect();
        Self {
            id: row.id,
            address: &row.address,
            sender: &row.sender,
            from: &row.from_text,
            from_email: &row.from_email,
            to: to.collect(),
            summary: row.into(),
            text_body: &texts.text,
            html_body: &texts.html,
            headers,
            attachments: attachments.iter().map(attachment_element).collect(),
            expires_at: timestamp(row.expires_at()),
            codes: &found.codes,
            links: &found.links,
        }
    }
}

fn attachment_element(attachment: &Attachment) -> AttachmentElement<'_> {
    AttachmentElement {
        index: attachment.index,
        filename: attachment.leaf.file_name.as_deref(),
        content_type: &attachment.leaf.media_type,
        size: attachment.size,
        content_id: attachment.leaf.content_id.as_deref(),
        inline: attachment.leaf.inline,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};
    use tempmail_runtime::config::Http;

    use super::super::budget::{Reader, RenderBudget};
    use super::*;
    use crate::http::client::{Client, ClientResolver};

    async fn full(raw: &[u8], surface: Surface) -> Value {
        let at = "2026-11-21T10:00:00.123Z".parse().unwrap();
        let row = MessageRow {
            id: tempmail_model::id::new_id(at),
            from_email: "s@c.example".into(),
            subject: "x".into(),
            ..MessageRow::default()
        };
        let reader = Reader { client: client(), inbox: row.inbox };
        let memory = RenderBudget::new().acquire(reader, raw.len(), 1 << 20).await.unwrap();
        let mut json = PieceWriter::new(memory, raw.len());
        write_full_message(raw, &row, surface, &mut json).unwrap();
        let body = json.finish().into_body();
        serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap()
    }

    fn client() -> Client {
        ClientResolver::new(&Http::default()).of_connection("192.0.2.1".parse().unwrap())
    }

    #[tokio::test]
    async fn renders_every_field() {
        let message = full(
            b"Return-Path: <s@c.example>\r\nTo: A <a@b.example>\r\nX: =?utf-8?q?=C3=A9?=\r\n\
              Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhi\r\nthere\r\n--b\r\n\
              Content-Type: text/html; charset=iso-8859-1\r\n\r\n<p>\xe9\r\n</p>\r\n--b\r\n\
              Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\
              Content-Disposition: attachment; filename=f.pdf\r\n\r\naGVsbG8=\r\n--b--\r\n",
            Surface::Api,
        )
        .await;
        assert_eq!(message["text_body"], "hi\r\nthere");
        assert_eq!(message["html_body"], "<p>é\r\n</p>");
        assert_eq!(message.get("shown_text"), None, "on /v1 only");
        assert_eq!(message["to"], json!(["A <a@b.example>"]));
        assert_eq!(message["headers"][2], json!({"name": "X", "value": "é"}));
        let pdf = json!({"index": 0, "filename": "f.pdf", "content_type": "application/pdf", "size": 5,
                         "content_id": null, "inline": false});
        assert_eq!(message["attachments"], json!([pdf]));
        assert_eq!(message["created_at"], "2026-11-21T10:00:00.123Z");
        assert_eq!(message["expires_at"], "2026-11-21T11:00:00.123Z");
        assert_eq!(message["is_read"], false);
        assert_eq!((&message["codes"], &message["links"]), (&json!([]), &json!([])));
    }

    #[tokio::test]
    async fn renders_an_answer_of_many_pieces() {
        let raw = [b"Subject: x\r\n\r\n".to_vec(), vec![1; 100_000]].concat();
        let message = full(&raw, Surface::Api).await;
        assert_eq!(message["text_body"], "\u{1}".repeat(100_000));
    }

    #[tokio::test]
    async fn renders_an_empty_message() {
        let message = full(b"", Surface::V1).await;
        assert_eq!((&message["text_body"], &message["html_body"]), (&json!(""), &json!("")));
        assert_eq!((&message["to"], &message["attachments"]), (&json!([]), &json!([])));
        assert_eq!(message.get("is_read"), None);
        for field in ["text", "html", "shown_text"] {
            assert_eq!(message[field], "", "{field}");
        }
    }
}
