//! `/api/v1/message/{id}` and `/view/{id}`: one message, its header fields, raw data, parts and bodies. `latest` is the newest
//! one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write as _};

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::Response;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tempmail_mime::{Attachment, Role, Structure, header_fields};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{MessageRow, StoredMessage};
use uuid::Uuid;

use super::messages::{AddressElement, elements};
use super::{Caller, Error, Mailpit};
use crate::compat::mail::TenantMail;
use crate::compat::mail_content;
use crate::compat::request::{Parameters, Segments};
use crate::compat::search::blind_recipients;
use crate::http::error::ApiError;
use crate::message::{Digest, MessageTexts, PieceWriter};
use crate::state::AppState;

/// The id that stands for the newest message.
pub(super) const LATEST: &str = "latest";

/// A whole message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    #[serde(rename = "ID")]
    id: Uuid,
    #[serde(rename = "MessageID")]
    message_id: &'a str,
    from: Option<AddressElement>,
    to: Vec<AddressElement>,
    cc: Vec<AddressElement>,
    bcc: Vec<AddressElement>,
    reply_to: Vec<AddressElement>,
    return_path: &'a str,
    subject: &'a str,
    list_unsubscribe: ListUnsubscribe,
    date: String,
    tags: [&'static str; 0],
    username: &'static str,
    text: Cow<'a, str>,
    #[serde(rename = "HTML")]
    html: &'a str,
    size: i32,
    inline: Vec<AttachmentElement<'a>>,
    attachments: Vec<AttachmentElement<'a>>,
}

/// How to leave a list, as the message says it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ListUnsubscribe {
    header: String,
    links: Vec<String>,
    errors: &'static str,
    header_post: String,
}

/// An attachment, without its data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AttachmentElement<'a> {
    #[serde(rename = "PartID")]
    part_id: String,
    file_name: &'a str,
    content_type: &'a str,
    #[serde(rename = "ContentID")]
    content_id: &'a str,
    size: usize,
    checksums: Checksums,
}

#[derive(Debug, Serialize)]
struct Checksums {
    #[serde(rename = "MD5")]
    md5: &'static str,
    #[serde(rename = "SHA1")]
    sha1: &'static str,
    #[serde(rename = "SHA256")]
    sha256: String,
}

/// The message of a path, with the beginning of its raw data.
pub(super) async fn find(mail: &TenantMail, id: &str) -> Result<StoredMessage, ApiError> {
    if id == LATEST {
        let newest = mail.latest().await?;
        return mail.find(&newest.id.to_string()).await;
    }
    mail.find(id).await
}

/// The message; it is read then.
pub(super) async fn get_message(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailpit, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = find(&mail, &id).await?;
    mail.mark(std::slice::from_ref(&message.row), true).await?;
    let pieces = mail.state().messages.pieces(message, mail.client(), write_message).await?;
    Ok(pieces.into_response("application/json"))
}

fn write_message(raw: &[u8], row: &MessageRow, json: &mut PieceWriter) -> io::Result<()> {
    let digest = Digest::of_message(raw);
    let structure = Structure::parse(raw);
    let texts = MessageTexts::of(&structure, raw);
    json.set_aside(texts.memory())?;
    let list_unsubscribe = ListUnsubscribe::of(&raw[structure.header.clone()]);
    let attachments = structure.attachments(raw);
    let (inline, others): (Vec<_>, Vec<_>) =
        attachments.iter().partition(|attachment| attachment.leaf.inline);
    serde_json::to_writer(
        json,
        &Message {
            id: row.id,
            message_id: &digest.message_id,
            from: digest.from.as_ref().map(Into::into),
            to: elements(&digest.to),
            cc: elements(&digest.cc),
            bcc: elements(&blind_recipients(row, &digest)),
            reply_to: elements(&digest.reply_to),
            return_path: &row.sender,
            subject: &row.subject,
            list_unsubscribe,
            date: timestamp(digest.date.unwrap_or_else(|| row.created_at())),
            tags: [],
            username: "",
            text: text_of(&texts),
            html: &texts.html,
            size: row.size,
            inline: AttachmentElement::all(&inline, raw),
            attachments: AttachmentElement::all(&others, raw),
        },
    )?;
    Ok(())
}

/// The text body or, where there is none, what the HTML shows.
pub(super) fn text_of(texts: &MessageTexts) -> Cow<'_, str> {
    if texts.text.is_empty() { texts.shown() } else { (&texts.text).into() }
}

impl ListUnsubscribe {
    fn of(header: &[u8]) -> Self {
        let field = |name: &str| {
            let mut fields = header_fields(header).filter(|field| field.name.eq_ignore_ascii_case(name));
            fields.next().map(|field| field.unfolded().into_owned()).unwrap_or_default()
        };
        let header = field("List-Unsubscribe");
        let links = header.split(',').filter_map(|link| {
            let link = link.trim().strip_prefix('<')?.strip_suffix('>')?;
            Some(link.to_owned())
        });
        Self {
            links: links.take(2).collect(),
            errors: "",
            header_post: field("List-Unsubscribe-Post"),
            header,
        }
    }
}

impl<'a> AttachmentElement<'a> {
    fn all(attachments: &[&'a Attachment], raw: &[u8]) -> Vec<Self> {
        attachments.iter().map(|attachment| Self::of(attachment, raw)).collect()
    }

    fn of(attachment: &'a Attachment, raw: &[u8]) -> Self {
        let leaf = &attachment.leaf;
        let octets = leaf.encoding.decode(&raw[leaf.body.clone()]);
        let sha256 = Sha256::digest(&octets).iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            part_id: attachment.index.to_string(),
            file_name: leaf.file_name.as_deref().unwrap_or_default(),
            content_type: &leaf.media_type,
            content_id: leaf.content_id.as_deref().unwrap_or_default(),
            size: attachment.size,
            checksums: Checksums { md5: "", sha1: "", sha256 },
        }
    }
}

/// The header fields by their canonical names, with the values as they were sent.
pub(super) async fn get_headers(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailpit, String>,
) -> Result<Json<BTreeMap<String, Vec<String>>>, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = find(&mail, &id).await?;
    let read = |raw: &[u8], _: &MessageRow| {
        let header = Structure::parse(raw).header;
        let mut fields = BTreeMap::<_, Vec<_>>::new();
        for field in header_fields(&raw[header]) {
            fields.entry(canonical(field.name)).or_default().push(field.unfolded().into_owned());
        }
        fields
    };
    Ok(Json(mail.state().messages.read(message, mail.client(), read).await?))
}

/// A field's name with capitals at the start of its words, as `Message-Id`.
fn canonical(name: &str) -> String {
    let mut starts_word = true;
    name.chars()
        .map(|c| {
            let cased = if starts_word { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            starts_word = c == '-';
            cased
        })
        .collect()
}

/// The message as it was received, as text; a download with `dl=1`.
pub(super) async fn get_raw(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailpit, String>,
    parameters: Parameters<Mailpit>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = find(&mail, &id).await?;
    let raw = mail.state().messages.raw_message(message, mail.client()).await?;
    if parameters.text("dl") == Some("1") {
        return Ok(raw);
    }
    let mut response = mail_content(raw);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.remove(CONTENT_DISPOSITION);
    Ok(response)
}

/// An attachment, decoded.
pub(super) async fn get_part(
    State(state): State<AppState>,
    caller: Caller,
    Segments((id, part), _): Segments<Mailpit, (String, String)>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = find(&mail, &id).await?;
    Ok(attachment(&mail, message, &part).await?)
}

/// An image among the attachments, in its own size; other attachments have none.
pub(super) async fn get_thumbnail(
    State(state): State<AppState>,
    caller: Caller,
    Segments((id, part), _): Segments<Mailpit, (String, String)>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = find(&mail, &id).await?;
    let image = attachment(&mail, message, &part).await?;
    let media_type =
        image.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media_type) {
        Ok(image)
    } else {
        Err(ApiError::NotFound.into())
    }
}

/// The attachment of a path. What is not an index is answered like an unknown one.
async fn attachment(mail: &TenantMail, message: StoredMessage, part: &str) -> Result<Response, ApiError> {
    match mail.state().messages.attachment(message, mail.client(), part).await {
        Err(ApiError::InvalidRequest(_)) => Err(ApiError::NotFound),
        found => found,
    }
}

/// The HTML as it was received, or the text. With `embed=1` the HTML is sanitized, and shows the images of the message.
pub(super) async fn view(
    State(state): State<AppState>,
    caller: Caller,
    Segments(file, _): Segments<Mailpit, String>,
    parameters: Parameters<Mailpit>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let messages = &mail.state().messages;
    if let Some(id) = file.strip_suffix(".html") {
        let message = find(&mail, id).await?;
        if parameters.text("embed") == Some("1") {
            let document = messages.document(message, mail.client(), false).await;
            return Ok(document.map_err(missing)?.into_response());
        }
        let html = messages.pieces(message, mail.client(), write_html).await?;
        return Ok(mail_content(html.into_response("text/html; charset=utf-8")));
    }
    let id = file.strip_suffix(".txt").ok_or(ApiError::NotFound)?;
    let message = find(&mail, id).await?;
    let text = messages.pieces(message, mail.client(), write_text).await?;
    Ok(mail_content(text.into_response("text/plain; charset=utf-8")))
}

fn write_html(raw: &[u8], _: &MessageRow, answer: &mut PieceWriter) -> io::Result<()> {
    let structure = Structure::parse(raw);
    if structure.leaves.iter().all(|leaf| leaf.role != Role::Html) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let texts = MessageTexts::of(&structure, raw);
    answer.set_aside(texts.memory())?;
    answer.write_all(texts.html.as_bytes())
}

fn write_text(raw: &[u8], _: &MessageRow, answer: &mut PieceWriter) -> io::Result<()> {
    let texts = MessageTexts::of(&Structure::parse(raw), raw);
    answer.set_aside(texts.memory())?;
    answer.write_all(text_of(&texts).as_bytes())
}

/// Clients know a message without HTML as 404.
fn missing(error: ApiError) -> ApiError {
    if error == ApiError::NoHtml { ApiError::NotFound } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_field_names_in_their_canonical_form() {
        for (name, expected) in
            [("message-ID", "Message-Id"), ("MIME-Version", "Mime-Version"), ("x", "X"), ("a--b", "A--B")]
        {
            assert_eq!(canonical(name), expected);
        }
    }

    #[test]
    fn reads_how_to_leave_a_list() {
        let header = b"List-Unsubscribe: <https://a.example/u>, <mailto:u@a.example>\r\n\
            list-unsubscribe-post: List-Unsubscribe=One-Click\r\n";
        let found = ListUnsubscribe::of(header);
        assert_eq!(found.links, ["https://a.example/u", "mailto:u@a.example"]);
        assert_eq!(found.header_post, "List-Unsubscribe=One-Click");
        assert_eq!(ListUnsubscribe::of(b"A: b\r\n").header, "");
    }
}
