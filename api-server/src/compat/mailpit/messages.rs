//! `/api/v1/messages` and `/api/v1/search`: list, search, mark and delete.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use tempmail_mime::Address;
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use super::query::parse;
use super::{Caller, Error, Mailpit};
use crate::compat::mail::{SCAN_MAX, TenantMail};
use crate::compat::request::{Body, Parameters};
use crate::compat::search::{Search, blind_recipients};
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::message::Digest;
use crate::state::AppState;

/// Messages of a page without `limit`, and at most.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;
/// The answer to a change.
const DONE: &str = "ok";

/// The newest messages of the tenant.
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailpit>,
) -> Result<Json<SummaryList>, Error> {
    let (start, limit) = page(&parameters)?;
    let mail = TenantMail::of(state, &caller);
    let count = mail.count().await?;
    let messages = mail.summaries(mail.list(start, limit).await?, Summary::new).await?;
    let total = usize::try_from(count.total).unwrap_or(0);
    Ok(Json(SummaryList {
        total: count.total,
        unread: count.unread,
        count: total,
        messages_count: total,
        messages_unread: usize::try_from(count.unread).unwrap_or(0),
        start,
        tags: [],
        messages,
    }))
}

/// The newest messages that a query finds.
pub(super) async fn search(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailpit>,
) -> Result<Json<SummaryList>, Error> {
    let (start, limit) = page(&parameters)?;
    let search = search_of(&parameters)?;
    let mail = TenantMail::of(state, &caller);
    let count = mail.count().await?;
    let found = mail.find_page(&search, start, limit).await?;
    let messages = mail.summaries(found.rows, Summary::new).await?;
    Ok(Json(SummaryList {
        total: count.total,
        unread: count.unread,
        count: found.total,
        messages_count: found.total,
        messages_unread: found.unread,
        start,
        tags: [],
        messages,
    }))
}

/// Marks messages as read or unread: those of `IDs`, those that `Search` finds, or all.
pub(super) async fn mark(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailpit>,
    Body(mut body, _): Body<Mailpit>,
) -> Result<&'static str, Error> {
    let is_read = body.flag("Read").map_err(ApiError::from)?;
    let ids = ids(&mut body)?;
    let query = match body.take("Search") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(query)) => query,
        Some(_) => return Err(ApiError::InvalidRequest("`Search` must be a string.".into()).into()),
    };
    let mail = TenantMail::of(state, &caller);
    match ids {
        Some(ids) => mail.mark(&mail.find_all(&ids).await?, is_read).await?,
        // An empty search finds everything.
        None => mail.mark_found(&parse(&query, parameters.text("tz"))?, is_read).await?,
    }
    Ok(DONE)
}

/// Deletes messages: those of `IDs`, or all.
pub(super) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Body(mut body, _): Body<Mailpit>,
) -> Result<&'static str, Error> {
    let mail = TenantMail::of(state, &caller);
    match ids(&mut body)? {
        Some(ids) => mail.delete(&mail.find_all(&ids).await?).await?,
        None => mail.clear().await?,
    }
    Ok(DONE)
}

/// Deletes the messages that a query finds.
pub(super) async fn delete_found(
    State(state): State<AppState>,
    caller: Caller,
    parameters: Parameters<Mailpit>,
) -> Result<&'static str, Error> {
    TenantMail::of(state, &caller).delete_found(&search_of(&parameters)?).await?;
    Ok(DONE)
}

fn page(parameters: &Parameters<Mailpit>) -> Result<(usize, usize), ApiError> {
    let start = parameters.number("start", SCAN_MAX)?.unwrap_or(0);
    let limit = parameters.number("limit", LIMIT_MAX)?.unwrap_or(LIMIT);
    Ok((start, limit))
}

fn search_of(parameters: &Parameters<Mailpit>) -> Result<Search, ApiError> {
    let missing = || ApiError::InvalidRequest("`query` is missing.".into());
    parse(parameters.text("query").ok_or_else(missing)?, parameters.text("tz"))
}

/// The ids of a body; `None` where there are none, which means all messages.
fn ids(body: &mut JsonObject) -> Result<Option<Vec<String>>, ApiError> {
    let wrong = || ApiError::InvalidRequest("`IDs` must be a list of ids.".into());
    let ids = match body.take("IDs") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(ids)) => ids,
        Some(_) => return Err(wrong()),
    };
    let ids = ids.into_iter().map(|id| id.as_str().map(str::to_owned).ok_or_else(wrong));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    Ok(Some(ids).filter(|ids| !ids.is_empty()))
}

/// An address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AddressElement {
    name: String,
    address: String,
}

impl From<&Address> for AddressElement {
    fn from(address: &Address) -> Self {
        Self { name: address.name.clone(), address: address.email.clone() }
    }
}

pub(super) fn elements(addresses: &[Address]) -> Vec<AddressElement> {
    addresses.iter().map(Into::into).collect()
}

/// A message in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Summary {
    #[serde(rename = "ID")]
    id: Uuid,
    #[serde(rename = "MessageID")]
    message_id: String,
    read: bool,
    from: Option<AddressElement>,
    to: Vec<AddressElement>,
    cc: Vec<AddressElement>,
    bcc: Vec<AddressElement>,
    reply_to: Vec<AddressElement>,
    subject: String,
    created: String,
    username: &'static str,
    tags: [&'static str; 0],
    size: i32,
    attachments: usize,
    snippet: String,
}

impl Summary {
    pub(super) fn new(row: MessageRow, digest: &Digest) -> Self {
        Self {
            id: row.id,
            message_id: digest.message_id.clone(),
            read: row.is_read,
            from: digest.from.as_ref().map(Into::into),
            to: elements(&digest.to),
            cc: elements(&digest.cc),
            bcc: elements(&blind_recipients(&row, digest)),
            reply_to: elements(&digest.reply_to),
            created: timestamp(row.created_at()),
            subject: row.subject,
            username: "",
            tags: [],
            size: row.size,
            attachments: digest.attachments,
            snippet: row.preview,
        }
    }
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct SummaryList {
    pub(super) total: i64,
    pub(super) unread: i64,
    /// As `messages_count`, for old clients.
    pub(super) count: usize,
    pub(super) messages_count: usize,
    pub(super) messages_unread: usize,
    pub(super) start: usize,
    pub(super) tags: [&'static str; 0],
    pub(super) messages: Vec<Summary>,
}
