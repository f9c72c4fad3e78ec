//! The forms of errors on drop-in surfaces, as the clients of those services read them. None asks for HTTP Basic: no
//! browser shall keep a token.

use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;

use super::code::{self, Code};

/// The error answer of a drop-in surface.
pub(super) fn error_response(surface: DropInSurface, error: Code, message: &str) -> Response {
    let status = status(surface, error);
    let message = message_on(surface, error).unwrap_or(message);
    let mut response = match surface {
        DropInSurface::Mailpit | DropInSurface::MailHog => (status, format!("{message}\n")).into_response(),
        DropInSurface::Mailosaur => (status, Json(mailosaur_body(status, error, message))).into_response(),
    };
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"tempmail\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The status that the clients of a surface know for an error.
fn status(surface: DropInSurface, error: Code) -> StatusCode {
    match surface {
        _ if error == code::SESSION_EXPIRED => StatusCode::UNAUTHORIZED,
        DropInSurface::Mailosaur => error.0,
        _ if error == code::EMAIL_EXPIRED => StatusCode::NOT_FOUND,
        _ => error.0,
    }
}

/// The sentence of an error, where that of the interface would not help here.
fn message_on(surface: DropInSurface, error: Code) -> Option<&'static str> {
    let missing = error == code::AUTHENTICATION_REQUIRED;
    let expired = error == code::SESSION_EXPIRED;
    match surface {
        _ if expired => Some("The token has expired; use another one."),
        DropInSurface::Mailosaur if missing => Some("Send a token of this surface as the API key."),
        _ if missing => {
            Some("Send a token of this surface as the password, or as `Authorization: Bearer <token>`.")
        }
        _ => None,
    }
}

fn mailosaur_body(status: StatusCode, (_, code): Code, message: &str) -> Value {
    if status == StatusCode::BAD_REQUEST {
        // Clients show the field in front of the description.
        let field = message.split('`').nth(1).unwrap_or_default();
        json!({"type": "ValidationError", "errors": [{"field": field, "detail": [{"description": message}]}]})
    } else {
        json!({"type": code, "message": message})
    }
}
