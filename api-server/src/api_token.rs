//! API tokens as `/pro/api` and `/v1` manage them: what is asked for, and what is answered.

use axum::Json;
use axum::http::StatusCode;
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TOKEN_DAYS_MAX, TOKEN_NAME_MAX, TokenKind, is_token_name};
use tempmail_store::{CreateOutcome, ListedToken, NewToken, StoreError};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::{ApiError, V1Error};
use crate::json_body::{BodyError, JsonObject};
use crate::state::AppState;
use tempmail_model::timestamp::timestamp;

/// An API token, without the token itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenRecord {
    id: Uuid,
    name: String,
    /// `pro` or `live`.
    kind: String,
    /// Its last four digits.
    hint: String,
    created_at: String,
    last_used_at: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
}

/// A page of tokens, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenList {
    tokens: Vec<TokenRecord>,
}

/// A token that was made just now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedToken {
    #[serde(flatten)]
    record: TokenRecord,
    /// The token, shown this once.
    token: String,
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
        }
    }
}

/// Why no token was made. Each surface has its own words for it.
#[derive(Debug)]
pub(crate) enum TokenError {
    Body(BodyError),
    LimitReached,
    AccountDisabled,
    Store(StoreError),
    /// Our own fault; logged.
    Internal,
}

impl From<BodyError> for TokenError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Body(error) => error.into(),
            TokenError::LimitReached => Self::TokenLimitReached,
            TokenError::AccountDisabled => Self::AccountDisabled,
            TokenError::Store(error) => error.into(),
            TokenError::Internal => Self::Internal,
        }
    }
}

impl From<TokenError> for V1Error {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Body(error) => error.into(),
            TokenError::LimitReached => Self::TokenLimitReached,
            TokenError::AccountDisabled => Self::AccountDisabled,
            TokenError::Store(error) => error.into(),
            TokenError::Internal => Self::Internal,
        }
    }
}

/// What a surface lets its callers make.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kinds {
    /// Pro tokens, unless live ones are asked for.
    ProOrLive,
    /// Live tokens alone: others are not to be seen either.
    LiveAlone,
}

impl Kinds {
    /// The one kind that is seen; `None` for both.
    pub(crate) fn only(self) -> Option<TokenKind> {
        match self {
            Self::ProOrLive => None,
            Self::LiveAlone => Some(TokenKind::Live),
        }
    }

    /// The kind of a body's `kind`; without one the kind that the surface itself takes.
    fn read(self, value: Option<&Value>) -> Result<TokenKind, BodyError> {
        let expected = match self {
            Self::ProOrLive => "`pro` or `live`",
            Self::LiveAlone => "`live`",
        };
        match (self, value.map(Value::as_str)) {
            (Self::ProOrLive, None) | (Self::ProOrLive, Some(Some("pro"))) => Ok(TokenKind::Pro),
            (Self::LiveAlone, None) | (_, Some(Some("live"))) => Ok(TokenKind::Live),
            _ => Err(BodyError::Wrong { field: "kind", expected }),
        }
    }

    /// The body that makes a token.
    pub(crate) fn schema(self) -> Value {
        let kind = match self {
            Self::ProOrLive => {
                json!({"type": ["string", "null"], "enum": ["pro", "live", null], "default": "pro",
                       "examples": ["live"]})
            }
            Self::LiveAlone => json!({"type": ["string", "null"], "enum": ["live", null], "default": "live",
                                      "examples": ["live"]}),
        };
        let days = json!({"type": ["integer", "null"], "minimum": 1, "maximum": TOKEN_DAYS_MAX,
                          "description": "Without it the token never expires.", "examples": [30]});
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": TOKEN_NAME_MAX,
                         "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
                         "description": "What its owner calls it; no control characters.",
                         "examples": ["continuous integration"]},
                "kind": kind,
                "expires_in_days": days,
            },
        })
    }
}

/// A page of a tenant's tokens.
pub(crate) async fn list(
    state: &AppState,
    tenant: Uuid,
    kinds: Kinds,
    page: i64,
) -> Result<Json<TokenList>, StoreError> {
    let tokens = state.store.list_tokens(tenant, kinds.only(), page, state.clock.now()).await?;
    Ok(Json(TokenList { tokens: tokens.into_iter().map(Into::into).collect() }))
}

/// Makes the token that `body` describes, for the tenant of the token `by`.
pub(crate) async fn create(
    state: &AppState,
    tenant: Uuid,
    by: Uuid,
    kinds: Kinds,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedToken>), TokenError> {
    let name = read_name(body.text("name")?)?;
    let kind = kinds.read(given(body.take("kind")).as_ref())?;
    let days = given(body.take("expires_in_days")).map(|value| read_days(&value)).transpose()?;
    let token = PlainToken::generate(kind).map_err(|error| {
        tracing::error!("the operating system gives no randomness: {error}");
        TokenError::Internal
    })?;
    let now = state.clock.now();
    let id = new_id(now);
    let expires_at = days.map(|days| now + SignedDuration::from_hours(24 * days));
    let created_by = by.to_string();
    let new = NewToken { tenant, kind, name: &name, token: &token, created_by: &created_by, expires_at };
    match state.store.create_token(id, new, now).await? {
        CreateOutcome::Created => {}
        CreateOutcome::LimitReached => return Err(TokenError::LimitReached),
        CreateOutcome::TenantDisabled => return Err(TokenError::AccountDisabled),
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
    };
    Ok((StatusCode::CREATED, Json(CreatedToken { record, token: token.expose().to_owned() })))
}

/// An optional field: `null` is as if it were missing.
fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

fn read_name(name: String) -> Result<String, BodyError> {
    if is_token_name(&name) {
        Ok(name)
    } else {
        Err(BodyError::Wrong {
            field: "name",
            expected: "1 to 100 characters, none of them a control character",
        })
    }
}

fn read_days(value: &Value) -> Result<i64, BodyError> {
    // 30.0 is an integer of JSON, too.
    #[expect(clippy::cast_possible_truncation, reason = "what is cut off is beyond the bounds")]
    let whole = || value.as_f64().filter(|days| days.fract() == 0.0).map(|days| days as i64);
    value
        .as_i64()
        .or_else(whole)
        .filter(|days| (1..=TOKEN_DAYS_MAX).contains(days))
        .ok_or(BodyError::Wrong { field: "expires_in_days", expected: "an integer from 1 to 3650" })
}
