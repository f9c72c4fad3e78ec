//! Which kinds of tokens a surface manages.

use axum::extract::FromRequestParts;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
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

    /// The kind of a new token, from the body's `kind`. One for drop-in surfaces is a live token.
    pub(super) fn parse(self, value: Option<&Value>, for_surfaces: bool) -> Result<TokenKind, BodyError> {
        let may_be_pro = matches!(self, Self::ProAndLive) && !for_surfaces;
        let expected = match (self, for_surfaces) {
            (_, true) => "`live`, where there are `surfaces`",
            (Self::ProAndLive, false) => "`pro` or `live`",
            (Self::LiveOnly, false) => "`live`",
        };
        match value.map(Value::as_str) {
            None if may_be_pro => Ok(TokenKind::Pro),
            Some(Some("pro")) if may_be_pro => Ok(TokenKind::Pro),
            None | Some(Some("live")) => Ok(TokenKind::Live),
            _ => Err(BodyError::Invalid { field: "kind", expected }),
        }
    }

    /// The body that creates a token.
    pub(crate) fn schema(self) -> Value {
        // `null` is as if it were missing, and no member of the enum: generators can't name a constant for it.
        let kind = match self {
            Self::ProAndLive => {
                json!({"type": ["string", "null"], "enum": ["pro", "live"], "default": "pro",
                       "examples": ["live"]})
            }
            Self::LiveOnly => {
                json!({"type": ["string", "null"], "enum": ["live"], "default": "live",
                       "examples": ["live"]})
            }
        };
        let days = json!({"type": ["integer", "null"], "minimum": 1, "maximum": TOKEN_DAYS_MAX,
                          "description": "Without it the token never expires.", "examples": [30]});
        let names = DropInSurface::ALL.map(DropInSurface::as_str);
        let surfaces = json!({"type": ["array", "null"], "items": {"type": "string", "enum": names},
                              "description": "Drop-in surfaces: a live token that works on these and nowhere else.",
                              "examples": [["mailpit"]]});
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": name_schema(),
                "kind": kind,
                "expires_in_days": days,
                "surfaces": surfaces,
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
