//! Mail as a tool shows it.

use serde_json::{Value, json};
use tempmail_client::shown_text::without_hidden;
use tempmail_client::{Email, EmailSummary, is_safe_code, safe_link};
use tempmail_extract::shown_text;
use uuid::Uuid;

use crate::fence::Untrusted;

/// Attachments, recipients, codes and links that are named.
const NAMED_MAX: usize = 50;

/// What is known about a mail that was read, and what the sender wrote.
pub(crate) struct Reading {
    pub(crate) facts: Value,
    pub(crate) untrusted: Untrusted,
}

/// The id of a mail, as only the server makes them.
pub(crate) fn safe_id(id: &str) -> Option<String> {
    id.parse::<Uuid>().ok().map(|id| id.to_string())
}

/// Sender, recipient and subject of a mail.
pub(crate) fn summary(email: &EmailSummary, untrusted: &mut Untrusted) {
    untrusted.field("to", &email.address);
    untrusted.field("from", &email.from_email);
    untrusted.field("subject", &email.subject);
}

/// A mail with at most `characters` of its text: the plain text, or the HTML as it is shown.
pub(crate) fn read(email: &Email, characters: usize) -> Reading {
    let mut untrusted = Untrusted::default();
    untrusted.field("from", &email.from);
    for to in email.to.iter().take(NAMED_MAX) {
        untrusted.field("to", to);
    }
    untrusted.field("address", &email.address);
    untrusted.field("subject", &email.subject);
    for attachment in email.attachments.iter().take(NAMED_MAX) {
        let name = attachment.filename.as_deref().unwrap_or_default();
        let (media, size) = (&attachment.content_type, attachment.size);
        untrusted.field("attachment", &format!("{name} ({media}, {size} bytes)"));
    }
    for link in email.extraction.links.iter().take(NAMED_MAX) {
        if let Some(safe) = safe_link(link) {
            untrusted.field("link", &format!("{} leads to the host {}: {}", link.text, safe.host, safe.url));
        }
    }
    untrusted.push("");
    let has_plain_text = !without_hidden(&email.text_body).0.trim().is_empty();
    // A character has at most 4 bytes: the text is cut by characters below.
    let shown = (!has_plain_text).then(|| shown_text(&email.html_body, characters.saturating_mul(4)));
    let text = shown.as_ref().map_or(email.text_body.as_str(), |shown| shown.text.as_str());
    let kept = text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end]);
    untrusted.push(kept);
    let left_out = shown.as_ref().is_some_and(|shown| shown.left_out_hidden) || untrusted.has_hidden();
    let cut = kept.len() < text.len() || shown.as_ref().is_some_and(|shown| shown.cut);
    let codes = email.extraction.codes.iter().map(|code| &code.code).filter(|code| is_safe_code(code));
    let facts = json!({
        "id": safe_id(&email.id),
        "text_is_from": if has_plain_text { "text" } else { "html" },
        "hidden_text_was_left_out": left_out,
        "text_was_cut": cut,
        "codes": codes.take(NAMED_MAX).collect::<Vec<_>>(),
        "links": email.extraction.links.iter().filter_map(safe_link).take(NAMED_MAX).collect::<Vec<_>>(),
        "attachments": email.attachments.len(),
    });
    Reading { facts, untrusted }
}
