//! The `Authorization: Bearer` header (RFC 6750 2.1).

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::http::error::ApiError;

/// The Bearer token of a request; `None` where the request has no such header, or an empty token, which many clients send
/// where they have none.
///
/// # Errors
/// [`ApiError::InvalidToken`] for another scheme, or more than one header.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::InvalidToken);
    }
    let value = value.to_str().map_err(|_not_ascii| ApiError::InvalidToken)?.trim();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let token = token.trim_start();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    match token {
        "" if is_bearer || scheme.is_empty() => Ok(None),
        token if is_bearer => Ok(Some(token)),
        _ => Err(ApiError::InvalidToken),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn parse(values: &[&'static str]) -> Result<Option<String>, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        bearer(&headers).map(|token| token.map(str::to_owned))
    }

    #[test]
    fn tells_a_missing_header_from_a_malformed_one() {
        assert_eq!(parse(&[]), Ok(None));
        for empty in ["", "Bearer", "bearer ", "  Bearer  "] {
            assert_eq!(parse(&[empty]), Ok(None), "{empty:?}");
        }
        assert_eq!(parse(&["bearer  abc"]), Ok(Some("abc".into())));
        for wrong in [&["Basic YTpi"][..], &["Basic"], &["abc"], &["Bearer a", "Bearer a"], &["", ""]] {
            assert_eq!(parse(wrong), Err(ApiError::InvalidToken), "{wrong:?}");
        }
    }
}
