//! The `Authorization: Bearer` header (RFC 6750 2.1).

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::http::error::ApiError;

/// The Bearer token of a request; `None` where the request has no such header.
///
/// # Errors
/// [`ApiError::InvalidToken`] for another scheme, more than one header, or an empty token.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::InvalidToken);
    }
    let value = value.to_str().map_err(|_not_ascii| ApiError::InvalidToken)?.trim();
    if value.is_empty() {
        return Ok(None);
    }
    let (scheme, token) = value.split_once(' ').ok_or(ApiError::InvalidToken)?;
    let token = token.trim_start();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(ApiError::InvalidToken);
    }
    Ok(Some(token))
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
        assert_eq!(parse(&[""]), Ok(None));
        assert_eq!(parse(&["bearer  abc"]), Ok(Some("abc".into())));
        for wrong in [&["Bearer"][..], &["Basic YTpi"], &["abc"], &["Bearer a", "Bearer a"]] {
            assert_eq!(parse(wrong), Err(ApiError::InvalidToken), "{wrong:?}");
        }
    }
}
