//! `tempmail mail read`

use tempmail_client::{Client, Email, is_safe_code, safe_link};
use uuid::Uuid;

use super::output;
use crate::command::client::ClientFailure;

/// Prints a mail: what is known about it, an empty line, and its text as it is shown.
pub(super) async fn run(client: &Client, id: Uuid, json: bool) -> anyhow::Result<()> {
    let email = client.email(id).await.map_err(ClientFailure::from)?;
    if json {
        return output::json(&email);
    }
    output::fields(&fields(&email))?;
    let text = if email.shown_text.is_empty() { &email.text_body } else { &email.shown_text };
    if text.is_empty() {
        return Ok(());
    }
    output::line("")?;
    output::text(text.trim_end_matches(['\r', '\n']))
}

fn fields(email: &Email) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("from", email.from.clone()),
        ("to", email.to.join(", ")),
        ("subject", email.subject.clone()),
        ("address", email.address.clone()),
        ("received", email.created_at.clone()),
        ("expires", email.expires_at.clone()),
    ];
    for attachment in &email.attachments {
        let name = attachment.filename.as_deref().unwrap_or("without a name");
        let (index, media, size) = (attachment.index, &attachment.content_type, attachment.size);
        fields.push(("attachment", format!("{index} {name} ({media}, {size} bytes)")));
    }
    let codes = email.extraction.codes.iter().filter(|code| is_safe_code(&code.code));
    fields.extend(codes.map(|code| ("code", code.code.clone())));
    let links = email.extraction.links.iter().filter_map(safe_link);
    fields.extend(links.map(|link| ("link", format!("{} {}", link.kind, link.url))));
    fields
}
