//! `/v1/email/{id}`: one message, its raw data and attachments; `/v1/emails`: the mail of everything that a tenant owns, or
//! of one address.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tempmail_model::limits::{EMAIL_LIST_LIMIT, EMAIL_LIST_MAX};
use tempmail_store::{InboxQuery, MessageRow, ScanRange, ScanRequest, StoreError, StoredMessage};
use utoipa::ToSchema;
use uuid::Uuid;

use super::address::parse_query_address;
use crate::auth::{LiveCaller, MailCaller};
use crate::http::error::{ApiError, Surface, V1Error, code};
use crate::http::parameter::{PageLimit, unique_query_parameters};
use crate::message::{Email, EmailSummary};
use crate::openapi::{Credential, Operation, Routes, query};
use crate::realtime::cursor::open_cursor;
use crate::resources::message::{self, MessageReader, MessageRoutes, codes_route};
use crate::state::AppState;

impl MessageReader for MailCaller {
    type Error = V1Error;
    type Shown = Email<'static>;

    const SURFACE: Surface = Surface::V1;

    async fn find(
        &self,
        state: &AppState,
        id: Uuid,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let (tenant, address) = self.message_scope();
        state.store.find_readable_message(tenant, address, id, &state.reserved, now, raw_len).await
    }
}

/// The routes of `/v1/email` and `/v1/emails`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Live, summary);
    message::routes::<MailCaller>(MessageRoutes {
        item: "/v1/email/{id}",
        raw: "/v1/email/{id}/raw",
        attachment: "/v1/email/{id}/attachments/{index}",
        show: operation("getEmail", "Show a message"),
        delete: operation("deleteEmail", "Delete a message"),
        download: operation("getRawEmail", "Download a message as it was received"),
        download_attachment: operation("getEmailAttachment", "Download an attachment"),
    })
    .merge(codes_route::<MailCaller>(
        "/v1/email/{id}/codes",
        operation("getEmailCodes", "Show the one-time codes and action links of a message"),
    ))
    .merge(list_route())
}

/// The route of `/v1/emails`.
fn list_route() -> Routes<AppState> {
    let limit = json!({"type": "integer", "minimum": 1, "default": EMAIL_LIST_LIMIT});
    let operation = Operation::new("listEmails", Credential::Live, "List the mail of everything the tenant owns")
        .description(
            "Of its mailboxes, and of every address under its verified custom domains, as `/v1/me`. With `address`, \
             the mail that `/v1/inbox/{address}` waits for.",
        )
        .parameter(query("limit", "Messages in one answer; above 50 counts as 50.", limit))
        .parameter(query(
            "before",
            "`next_before` of an earlier answer: what follows it.",
            json!({"type": "string", "minLength": 1}),
        ))
        .parameter(query(
            "address",
            "Only mail to this exact address; a space stands for `+`.",
            json!({"type": "string", "pattern": "^.+@.+$"}),
        ))
        .json::<EmailList>(200, "A page, newest first.")
        .fails(&[code::INVALID_REQUEST, code::NOT_FOUND]);
    Routes::new().get("/v1/emails", operation, list_emails)
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
struct EmailList {
    /// Newest first.
    emails: Vec<EmailSummary>,
    /// `before` of the next page; `null` after the last one.
    next_before: Option<String>,
}

async fn list_emails(
    State(state): State<AppState>,
    caller: LiveCaller,
    PageLimit(limit): PageLimit,
    uri: Uri,
) -> Result<Json<EmailList>, V1Error> {
    let [before, address] = unique_query_parameters(&uri, ["before", "address"])
        .ok_or(ApiError::InvalidRequest("Each query parameter must be given once.".into()))?;
    let before = before.map(|cursor| open_cursor(&state, caller.tenant, &cursor)).transpose()?;
    let limit = limit.unwrap_or(EMAIL_LIST_LIMIT).min(EMAIL_LIST_MAX);
    // One more tells whether a page follows.
    let range = ScanRange::Before(before.map_or(i64::MAX, |position| position.seq));
    let scan = ScanRequest::new(range, limit + 1);
    let rows = match address {
        None => scan_owned(&state, caller.tenant, scan).await?,
        Some(address) => scan_address(&state, caller.tenant, &address, scan).await?,
    };
    Ok(Json(page(&state, caller.tenant, &rows, usize::try_from(limit).unwrap_or(usize::MAX))))
}

async fn scan_owned(state: &AppState, tenant: Uuid, scan: ScanRequest) -> Result<Vec<MessageRow>, ApiError> {
    let found = state.store.scan_tenant(tenant, None, scan, state.clock.now()).await?;
    // The tenant was deleted since its token was found.
    Ok(found.ok_or(ApiError::InvalidToken)?.rows)
}

async fn scan_address(
    state: &AppState,
    tenant: Uuid,
    address: &str,
    scan: ScanRequest,
) -> Result<Vec<MessageRow>, ApiError> {
    let address = &parse_query_address(state.config.address_syntax(), address)?;
    let reserved = state.reserved.reservation_of(address.base_local_part());
    let query = InboxQuery { tenant, address, reserved };
    let found = state.store.scan_inbox(query, scan, state.clock.now()).await?;
    Ok(found.ok_or(ApiError::NotFound)?.rows)
}

/// The first `limit` of these messages, and the cursor of what follows.
fn page(state: &AppState, tenant: Uuid, rows: &[MessageRow], limit: usize) -> EmailList {
    let shown = &rows[..rows.len().min(limit)];
    let last = shown.last().filter(|_| rows.len() > limit);
    let generations = state.arrivals.generations();
    let next_before =
        last.map(|row| state.cursors.seal(tenant, generations.id(generations.current()), row.seq));
    EmailList { emails: shown.iter().map(EmailSummary::from).collect(), next_before }
}
