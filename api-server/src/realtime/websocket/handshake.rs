//! The server's side of the opening handshake (RFC 6455 4.2).

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Version};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::error::ApiError;

/// Bytes of a client's nonce.
const NONCE_LENGTH: usize = 16;

/// The answer that upgrades the request's connection to a WebSocket.
///
/// # Errors
/// [`ApiError::UpgradeRequired`] where the request does not ask for a WebSocket of version 13.
pub(super) fn accept(request: &Request) -> Result<Response, ApiError> {
    let headers = request.headers();
    let is_upgrade = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && lists(headers, &CONNECTION, "upgrade")
        && lists(headers, &UPGRADE, "websocket")
        && only(headers, &SEC_WEBSOCKET_VERSION) == Some("13");
    let key = only(headers, &SEC_WEBSOCKET_KEY).filter(|key| is_upgrade && is_nonce(key));
    let accept = derive_accept_key(key.ok_or(ApiError::UpgradeRequired)?.as_bytes());
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty())
        .map_err(|_a_digest_in_base64_is_a_value| ApiError::Internal)
}

/// Whether a list field has this entry, ignoring case.
fn lists(headers: &HeaderMap, name: &HeaderName, entry: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(entry))
}

/// The value of a field that must be given once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim();
    values.next().is_none().then_some(value)
}

fn is_nonce(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == NONCE_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request of RFC 6455 1.2, with one field changed, or omitted where `value` is empty.
    fn answer(name: &str, value: &str) -> Result<Response, ApiError> {
        let fields = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
        ];
        let mut request = Request::builder();
        for (field, usual) in fields {
            let value = if field == name { value } else { usual };
            if !value.is_empty() {
                request = request.header(field, value);
            }
        }
        accept(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn answers_the_key_as_rfc_6455_says() {
        let accepted = answer("", "").unwrap();
        assert_eq!(accepted.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(accepted.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(answer("upgrade", "h2c, WebSocket").is_ok());
    }

    #[test]
    fn rejects_requests_for_anything_but_a_websocket_of_version_13() {
        for (name, wrong) in [
            ("connection", ""),
            ("connection", "keep-alive"),
            ("upgrade", ""),
            ("upgrade", "h2c"),
            ("sec-websocket-version", ""),
            ("sec-websocket-version", "8"),
            ("sec-websocket-key", ""),
            ("sec-websocket-key", "AAAA"),
            ("sec-websocket-key", "not base64"),
        ] {
            assert_eq!(answer(name, wrong).unwrap_err(), ApiError::UpgradeRequired, "{name}: {wrong}");
        }
        let head = Request::builder().method(Method::HEAD).body(Body::empty()).unwrap();
        assert!(accept(&head).is_err());
    }
}
