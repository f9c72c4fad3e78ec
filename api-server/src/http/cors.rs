//! Cross-origin requests (Fetch standard): the site's own origin and those of `http.cors_origins` are
//! allowed.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tempmail_runtime::config::Http;

/// The origin of a request, if it is allowed. A copy: the field itself would keep the buffer of the
/// whole header section for as long as the request waits.
pub(super) fn allowed_origin(http: &Http, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    let mut allowed = http.cors_origins.iter().chain([&http.base_url]);
    let is_allowed = allowed.any(|url| origin_of(url).is_some_and(|known| known == text));
    is_allowed.then(|| HeaderValue::from_str(text).ok()).flatten()
}

/// Whether a request is a CORS preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight from an allowed origin.
pub(super) fn preflight() -> Response {
    let fields = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, x-api-token, last-event-id"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, fields).into_response()
}

/// Lets a page of `origin` read the answer.
pub(super) fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "content-disposition, ratelimit, ratelimit-policy, retry-after, www-authenticate, x-next-since, \
             x-request-id",
        ),
    );
}

/// `scheme://host[:port]` of a URL as browsers send it: lower case, no default port.
pub(crate) fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let mut origin = format!("{scheme}://{authority}").to_ascii_lowercase();
    for (scheme, port) in [("https://", ":443"), ("http://", ":80")] {
        if origin.starts_with(scheme) && origin.ends_with(port) {
            origin.truncate(origin.len() - port.len());
        }
    }
    Some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_only_the_configured_origins() {
        let http = Http {
            base_url: "https://Mail.example:443/app".into(),
            cors_origins: vec!["http://localhost:3000".into()],
            ..Http::default()
        };
        let allowed = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            allowed_origin(&http, &headers).is_some()
        };
        assert!(allowed("https://mail.example") && allowed("http://localhost:3000"));
        for other in
            ["http://mail.example", "https://mail.example.evil.example", "null", "https://mail.example:8443"]
        {
            assert!(!allowed(other), "{other}");
        }
        assert!(allowed_origin(&http, &HeaderMap::new()).is_none());
    }
}
