//! Which kinds of tokens a surface manages.

use axum::extract::FromRequestParts;
use serde_json::{Value, json};
use tempmail_model::token::{TOKEN_DAYS_MAX, TOKEN_NAME_MAX, TokenKind};

use crate::auth::{LiveCaller, ProCaller, TenantCaller};
use crate::http::json_body::BodyError;
use crate::state::AppState;

/// A caller that manages the API tokens of its tenant.
pub(crate) trait TokenManager: TenantCaller + FromRequestParts<AppState> {
    /// The kinds that the caller's surface manages.
    const KINDS: ManagedTokenKinds;
}

impl TokenManager for ProCaller {
    const KINDS: ManagedTokenKinds = ManagedTokenKinds::ProAndLive;
}

impl TokenManager for LiveCaller {
    const KINDS: ManagedTokenKinds = ManagedTokenKinds::LiveOnly;
}

/// The kinds of tokens that a surface lists, creates and revokes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ManagedTokenKinds {
    /// Both; new tokens are Pro tokens unless the body says `live`.
    ProAndLive,
    /// Live tokens; Pro tokens are not visible.
    LiveOnly,
}

impl ManagedTokenKinds {
    /// The only kind that is managed; `None` for both.
    pub(super) fn only(self) -> Option<TokenKind> {
        match self {
            Self::ProAndLive => None,
            Self::LiveOnly => Some(TokenKind::Live),
        }
    }

    /// The kind of a new token, from the body's `kind`.
    pub(super) fn parse(self, value: Option<&Value>) -> Result<TokenKind, BodyError> {
        let expected = match self {
            Self::ProAndLive => "`pro` or `live`",
            Self::LiveOnly => "`live`",
        };
        match (self, value.map(Value::as_str)) {
            (Self::ProAndLive, None) | (Self::ProAndLive, Some(Some("pro"))) => Ok(TokenKind::Pro),
            (Self::LiveOnly, None) | (_, Some(Some("live"))) => Ok(TokenKind::Live),
            _ => Err(BodyError::Invalid { field: "kind", expected }),
        }
    }

    /// The body that creates a token.
    pub(crate) fn schema(self) -> Value {
        let kind = match self {
            Self::ProAndLive => {
                json!({"type": ["string", "null"], "enum": ["pro", "live", null], "default": "pro",
                       "examples": ["live"]})
            }
            Self::LiveOnly => json!({"type": ["string", "null"], "enum": ["live", null], "default": "live",
                                     "examples": ["live"]}),
        };
        let days = json!({"type": ["integer", "null"], "minimum": 1, "maximum": TOKEN_DAYS_MAX,
                          "description": "Without it the token never expires.", "examples": [30]});
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": name_schema(),
                "kind": kind,
                "expires_in_days": days,
            },
        })
    }
}

/// The schema of a token's name.
pub(crate) fn name_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": TOKEN_NAME_MAX,
           "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
           "description": "A name for people to know the token by; no control characters.",
           "examples": ["continuous integration"]})
}
