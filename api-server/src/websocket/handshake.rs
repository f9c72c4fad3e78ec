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

use crate::error::ApiError;

/// Octets of a client's nonce.
const NONCE: usize = 16;

/// The answer that makes a WebSocket of the request's connection.
///
/// # Errors
/// [`ApiError::UpgradeRequired`] where it asks for none, or for another version.
pub(super) fn accept(request: &Request) -> Result<Response, ApiError> {
    let headers = request.headers();
    let asked = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && lists(headers, &CONNECTION, "upgrade")
        && lists(headers, &UPGRADE, "websocket")
        && only(headers, &SEC_WEBSOCKET_VERSION) == Some("13");
    let key = only(headers, &SEC_WEBSOCKET_KEY).filter(|key| asked && is_nonce(key));
    let accept = derive_accept_key(key.ok_or(ApiError::UpgradeRequired)?.as_bytes());
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty())
        .map_err(|_a_digest_in_base64_is_a_value| ApiError::Internal)
}

/// Whether a field that is a list has this entry, in any case.
fn lists(headers: &HeaderMap, name: &HeaderName, entry: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(entry))
}

/// The value of a field that is to be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim();
    values.next().is_none().then_some(value)
}

fn is_nonce(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == NONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request of RFC 6455 1.2, with one field changed, or left out where it has no value.
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
    fn the_key_is_answered_as_the_rfc_says() {
        let accepted = answer("", "").unwrap();
        assert_eq!(accepted.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(accepted.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(answer("upgrade", "h2c, WebSocket").is_ok());
    }

    #[test]
    fn what_asks_for_no_websocket_of_version_13_is_told_so() {
        for (name, wrong) in [
            ("connection", ""),
            ("connection", "keep-alive"),
            ("upgrade", ""),
            ("upgrade", "h2c"),
            ("sec-websocket-version", ""),
            ("sec-websocket-version", "8"),
            ("sec-websocket-key", ""),
            ("sec-websocket-key", "AAAA"),
            ("sec-websocket-key", "no base64 at all, is it?"),
        ] {
            assert_eq!(answer(name, wrong).unwrap_err(), ApiError::UpgradeRequired, "{name}: {wrong}");
        }
        let head = Request::builder().method(Method::HEAD).body(Body::empty()).unwrap();
        assert!(accept(&head).is_err());
    }
}
