//! `/api/messages`: search, list, read and delete. `/api/files`: raw messages and attachments.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
use tempmail_store::MessageRow;

use super::message::{Summary, write_message};
use super::servers::{self, Server};
use super::{Caller, Error, Mailosaur};
use crate::compat::mail::{SCAN_MAX, TenantMail};
use crate::compat::request::{Body, Parameters, Segments};
use crate::compat::search::{Search, Term, Word};
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::message::{Digest, PieceWriter};
use crate::state::AppState;

/// Messages of a page without `itemsPerPage`, and at most.
const ITEMS: usize = 50;
const ITEMS_MAX: usize = 1_000;
/// Milliseconds between the requests of a client that waits for its first message: of the first, the second and so on.
const DELAYS: HeaderValue = HeaderValue::from_static("250,500,500,1000,1000,2000");
const MS_DELAY: HeaderName = HeaderName::from_static("x-ms-delay");

/// A page of messages, newest first.
#[derive(Debug, Default, Serialize)]
struct SummaryList {
    items: Vec<Summary>,
}

/// Which messages of a server are asked for.
struct Page {
    server: Server,
    search: Search,
    /// Messages before the page, and of it.
    start: usize,
    items: usize,
    /// Those that were sent from here: there are none.
    is_sent: bool,
}

impl Page {
    async fn parse(
        state: &AppState,
        caller: &Caller,
        parameters: &Parameters<Mailosaur>,
    ) -> Result<Self, ApiError> {
        let server = server_of(state, caller, parameters).await?;
        let items = parameters.number("itemsPerPage", ITEMS_MAX)?.unwrap_or(ITEMS);
        let page = parameters.number("page", SCAN_MAX)?.unwrap_or(0);
        let mut search = Search::new();
        search.add(Term::Domain(server.domain.clone()), false)?;
        if let Some(time) = parameters.time("receivedAfter")? {
            search.add(Term::Since(time), false)?;
        }
        let is_sent = parameters.text("dir").is_some_and(|dir| dir.eq_ignore_ascii_case("sent"));
        Ok(Self { server, search, start: page.saturating_mul(items), items, is_sent })
    }

    async fn list(self, mail: &TenantMail) -> Result<SummaryList, ApiError> {
        if self.is_sent {
            return Ok(SummaryList::default());
        }
        let found = mail.find_page(&self.search, self.start, self.items).await?;
        let summary = |row, digest: &Digest| Summary::new(row, digest, &self.server.id);
        Ok(SummaryList { items: mail.summaries(found.rows, summary).await? })
    }
}

/// Lists the messages of a server.
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailosaur>,
) -> Result<Response, Error> {
    let page = Page::parse(&state, &caller, &parameters).await?;
    Ok(Json(page.list(&TenantMail::of(state, &caller)).await?).into_response())
}

/// Searches the messages of a server, and the shared inbox of the exact address in `sentTo`. Clients wait by asking
/// again; how soon is in a header field.
pub(super) async fn search(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailosaur>,
    Body(criteria, _): Body<Mailosaur>,
) -> Result<Response, Error> {
    let mut page = Page::parse(&state, &caller, &parameters).await?;
    add_criteria(&mut page.search, criteria)?;
    let list = page.list(&TenantMail::of(state, &caller)).await?;
    Ok(([(MS_DELAY, DELAYS)], Json(list)).into_response())
}

/// The whole message.
pub(super) async fn get_message(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    let domain = message.row.address.rsplit_once('@').map_or("", |(_, domain)| domain);
    let server = servers::id_of_domain(mail.state(), caller.tenant, domain).await?;
    let write = move |raw: &[u8], row: &MessageRow, document, json: &mut PieceWriter| {
        write_message(raw, row, document, &server, json)
    };
    let pieces = mail.state().messages.pieces_with_document(message, mail.client(), write).await?;
    Ok(pieces.into_response("application/json"))
}

/// Deletes a message for every reader.
pub(super) async fn delete_message(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<StatusCode, Error> {
    TenantMail::of(state, &caller).delete_one(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes what the tenant owns of a server.
pub(super) async fn delete_all(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailosaur>,
) -> Result<StatusCode, Error> {
    let server = server_of(&state, &caller, &parameters).await?;
    let mut search = Search::new();
    search.add(Term::Domain(server.domain), false)?;
    TenantMail::of(state, &caller).delete_found(&search).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn server_of(
    state: &AppState,
    caller: &Caller,
    parameters: &Parameters<Mailosaur>,
) -> Result<Server, ApiError> {
    let missing = || ApiError::InvalidRequest("`server` is missing.".into());
    servers::find(state, caller.tenant, parameters.text("server").ok_or_else(missing)?).await
}

/// Adds what a body asks for: at least one criterion, all of which have to hold or, with `match`, any.
fn add_criteria(search: &mut Search, mut criteria: JsonObject) -> Result<(), ApiError> {
    let mut terms = Vec::new();
    if let Some(from) = criterion(&mut criteria, "sentFrom")? {
        terms.push(Term::From(from));
    }
    if let Some(to) = criterion(&mut criteria, "sentTo")? {
        let is_address =
            to.text().split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
        terms.push(if is_address { Term::Recipient(to) } else { Term::To(to) });
    }
    if let Some(subject) = criterion(&mut criteria, "subject")? {
        terms.push(Term::Subject(subject));
    }
    if let Some(body) = criterion(&mut criteria, "body")? {
        terms.push(Term::Text(body));
    }
    if terms.is_empty() {
        return Err(ApiError::InvalidRequest(
            "At least one of `sentFrom`, `sentTo`, `subject` and `body` must be given.".into(),
        ));
    }
    let mode = criterion(&mut criteria, "match")?.map(|mode| mode.text().to_lowercase());
    match mode.as_deref() {
        None | Some("all") => terms.into_iter().try_for_each(|term| search.add(term, false)),
        Some("any") => {
            search.any_of(terms);
            Ok(())
        }
        Some(_) => Err(ApiError::InvalidRequest("`match` must be ALL or ANY.".into())),
    }
}

/// A criterion, if it is given.
fn criterion(criteria: &mut JsonObject, name: &'static str) -> Result<Option<Word>, ApiError> {
    match criteria.take(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Word::parse(text.trim()).map(Some),
        Some(_) => Err(ApiError::InvalidRequest(format!("`{name}` must be a string.").into())),
    }
}

/// The message as it was received.
pub(super) async fn get_email(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Response, Error> {
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(&id).await?;
    Ok(mail.state().messages.raw_message(message, mail.client()).await?)
}

/// An attachment, decoded. Its id is that of the message and its index.
pub(super) async fn get_attachment(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Response, Error> {
    let (message, index) = id.rsplit_once('-').ok_or(ApiError::NotFound)?;
    let mail = TenantMail::of(state, &caller);
    let message = mail.find(message).await?;
    match mail.state().messages.attachment(message, mail.client(), index).await {
        Err(ApiError::InvalidRequest(_)) => Err(ApiError::NotFound.into()),
        found => Ok(found?),
    }
}
