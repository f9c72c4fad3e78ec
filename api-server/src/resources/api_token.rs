//! API tokens of a tenant: list, create, revoke.

mod kinds;

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::Value;
use tempmail_model::id::new_id;
use tempmail_model::surface::DropInSurface;
use tempmail_model::timestamp::timestamp;
use tempmail_model::token::{PlainToken, TOKEN_DAYS_MAX, TokenKind, is_token_name};
use tempmail_store::{ChangeError, CreateOutcome, ListedToken, NewToken};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::error::{ApiError, code};
use crate::http::json_body::{BodyError, JsonObject};
use crate::http::parameter::{PageNumber, PathId};
use crate::openapi::{Operation, Routes, path_id};
use crate::state::AppState;

pub(crate) use kinds::{TokenManager, name_schema};

/// The paths of a surface's token routes, and what is its own in their descriptions.
pub(crate) struct TokenRoutes {
    /// The path of the list.
    pub(crate) collection: &'static str,
    /// The path of one token, with `{id}`.
    pub(crate) item: &'static str,
    pub(crate) list: Operation,
    pub(crate) revoke: Operation,
}

/// The token routes of a surface, whose caller is `C`, but for the creation of a token.
pub(crate) fn routes<C: TokenManager>(surface: TokenRoutes) -> Routes<AppState> {
    let list = surface.list.page_of_owned().json::<TokenList>(200, "A page, newest first.");
    let revoke = surface
        .revoke
        .description("A token may revoke itself.")
        .parameter(path_id("Id of the token."))
        .empty(204, "The token is revoked; its open waits and streams end within 5 s.")
        .fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::MANAGED_BY_KUBERNETES]);
    Routes::new().get(surface.collection, list, list_tokens::<C>).delete(
        surface.item,
        revoke,
        revoke_token::<C>,
    )
}

async fn list_tokens<C: TokenManager>(
    State(state): State<AppState>,
    caller: C,
    PageNumber(page): PageNumber,
) -> Result<Json<TokenList>, C::Error> {
    let kind = C::KINDS.only();
    let listed = state.store.list_tokens(caller.tenant(), kind, page, state.clock.now()).await;
    Ok(Json(TokenList::new(listed.map_err(ApiError::from)?)))
}

async fn revoke_token<C: TokenManager>(
    State(state): State<AppState>,
    caller: C,
    PathId(id): PathId,
) -> Result<StatusCode, C::Error> {
    Ok(revoke(&state, &caller, id).await.map(|()| StatusCode::NO_CONTENT)?)
}

/// Revokes a token of the caller's tenant, or a minted one.
async fn revoke<C: TokenManager>(state: &AppState, caller: &C, id: Uuid) -> Result<(), ApiError> {
    let (store, tenant) = (state.store.acting(caller.actor()), caller.tenant());
    match store.revoke_token(tenant, id, C::KINDS.only(), state.clock.now()).await? {
        Err(ChangeError::NotFound) => {
            // A minted token ends soon by itself.
            state.limits.admit_change(tenant).await?;
            if store.revoke_minted_token(tenant, id).await? { Ok(()) } else { Err(ApiError::NotFound) }
        }
        revoked => {
            revoked?;
            state.limits.count_change(tenant).await;
            Ok(())
        }
    }
}

/// Creates the token that `body` describes, for the tenant of the caller.
///
/// # Errors
/// The body is malformed; [`ApiError::TokenLimitReached`]; the tenant is suspended; the store failed.
pub(crate) async fn create<C: TokenManager>(
    state: &AppState,
    caller: &C,
    mut body: JsonObject,
) -> Result<CreatedToken, ApiError> {
    let name = parse_name(body.text("name")?)?;
    let surfaces = not_null(body.take("surfaces")).map_or(Ok(Vec::new()), |value| parse_surfaces(&value))?;
    let kind = C::KINDS.parse(not_null(body.take("kind")).as_ref(), !surfaces.is_empty())?;
    let days = not_null(body.take("expires_in_days")).map(|value| parse_days(&value)).transpose()?;
    state.limits.admit_change(caller.tenant()).await?;
    let token = generate(kind)?;
    let now = state.clock.now();
    let id = new_id(now);
    let asked_for = days.map(|days| now + SignedDuration::from_hours(24 * days));
    let expires_at = [asked_for, caller.made_tokens_end_at()].into_iter().flatten().min();
    let created_by = caller.token().to_string();
    let tenant = caller.tenant();
    let new = NewToken {
        tenant,
        kind,
        name: &name,
        token: &token,
        surfaces: &surfaces,
        created_by: &created_by,
        expires_at,
    };
    match state.store.acting(caller.actor()).create_token(id, new, now).await? {
        CreateOutcome::Created => {}
        CreateOutcome::LimitReached => return Err(ApiError::TokenLimitReached),
        CreateOutcome::TenantDisabled => return Err(ApiError::AccountDisabled),
    }
    let record = TokenRecord {
        id,
        kind: kind.as_str().to_owned(),
        hint: token.hint().to_owned(),
        name,
        created_at: timestamp(now),
        last_used_at: None,
        expires_at: expires_at.map(timestamp),
        revoked_at: None,
        surfaces: surfaces.iter().map(|surface| surface.as_str().to_owned()).collect(),
    };
    Ok(CreatedToken { record, token: token.expose().to_owned() })
}

/// A new random token.
///
/// # Errors
/// [`ApiError::Internal`]: the operating system provides no randomness.
pub(crate) fn generate(kind: TokenKind) -> Result<PlainToken, ApiError> {
    PlainToken::generate(kind).map_err(|error| {
        tracing::error!("the operating system provides no randomness: {error}");
        ApiError::Internal
    })
}

/// An optional field: `null` counts as missing.
pub(crate) fn not_null(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

/// The name of a token.
///
/// # Errors
/// It is empty, too long, or has control characters.
pub(crate) fn parse_name(name: String) -> Result<String, BodyError> {
    if is_token_name(&name) {
        Ok(name)
    } else {
        Err(BodyError::Invalid {
            field: "name",
            expected: "1 to 100 characters, none of them a control character",
        })
    }
}

/// Drop-in surfaces by their names, each once, in one order.
fn parse_surfaces(value: &Value) -> Result<Vec<DropInSurface>, ApiError> {
    let expected = "a list of `mailpit`, `mailhog` and `mailosaur`";
    let invalid = || BodyError::Invalid { field: "surfaces", expected };
    let names = value.as_array().ok_or_else(invalid)?.iter().map(Value::as_str);
    let names = names.collect::<Option<BTreeSet<_>>>().ok_or_else(invalid)?;
    if let Some(removed) = DropInSurface::REMOVED.into_iter().find(|removed| names.contains(removed)) {
        let message = format!("`surfaces` must be {expected}; the surface `{removed}` was removed.");
        return Err(ApiError::InvalidRequest(message.into()));
    }
    let surfaces = names.into_iter().map(DropInSurface::from_name).collect::<Option<BTreeSet<_>>>();
    Ok(surfaces.ok_or_else(invalid)?.into_iter().collect())
}

fn parse_days(value: &Value) -> Result<i64, BodyError> {
    whole_number(value)
        .filter(|days| (1..=TOKEN_DAYS_MAX).contains(days))
        .ok_or(BodyError::Invalid { field: "expires_in_days", expected: "an integer from 1 to 3650" })
}

/// An integer; in JSON, 30.0 is one, too.
pub(crate) fn whole_number(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "what is cut off is beyond all bounds")]
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64);
    value.as_i64().or_else(whole)
}

/// An API token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenRecord {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    /// `pro` or `live`.
    pub(crate) kind: String,
    /// The last four characters of the token.
    pub(crate) hint: String,
    pub(crate) created_at: String,
    pub(crate) last_used_at: Option<String>,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// The drop-in surfaces that it is for, and for nothing else; empty for other tokens.
    pub(crate) surfaces: Vec<String>,
}

/// A page of tokens, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenList {
    tokens: Vec<TokenRecord>,
}

/// A new token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedToken {
    #[serde(flatten)]
    pub(crate) record: TokenRecord,
    /// The token. This is the only time that it is shown.
    pub(crate) token: String,
}

impl From<ListedToken> for TokenRecord {
    fn from(token: ListedToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            kind: token.kind,
            hint: token.hint,
            created_at: timestamp(token.created_at),
            last_used_at: token.last_used_at.map(timestamp),
            expires_at: token.expires_at.map(timestamp),
            revoked_at: token.revoked_at.map(timestamp),
            surfaces: token.surfaces,
        }
    }
}

impl TokenList {
    pub(super) fn new(tokens: Vec<ListedToken>) -> Self {
        Self { tokens: tokens.into_iter().map(Into::into).collect() }
    }
}
