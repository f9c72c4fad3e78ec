//! Cross-origin requests (Fetch standard): the site's own origin and those of `http.cors_origins` are
//! allowed; in a sink, those of this machine as well, where no cookie decides. No answer allows credentials.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tempmail_runtime::config::{Config, Http};

/// The origin of a request, if it is allowed. A copy: the field itself would keep the buffer of the
/// whole header section for as long as the request waits.
pub(super) fn allowed_origin(config: &Config, path: &str, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    let is_allowed = is_configured(&config.http, text)
        || (config.sink.is_some() && is_open_to_this_machine(path) && is_of_this_machine(text));
    is_allowed.then(|| HeaderValue::from_str(text).ok()).flatten()
}

fn is_configured(http: &Http, origin: &str) -> bool {
    let mut allowed = http.cors_origins.iter().chain([&http.base_url]);
    allowed.any(|url| origin_of(url).is_some_and(|known| known == origin))
}

/// Whether pages of this machine may use a path of a sink. What manages a tenant is not among them.
fn is_open_to_this_machine(path: &str) -> bool {
    let under =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !under("/pro/api") && !under("/mcp")
}

/// Whether an origin is `localhost` or a loopback address, with any port.
fn is_of_this_machine(origin: &str) -> bool {
    let authority = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    let authority = authority.and_then(|authority| authority.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        !authority.as_str().contains('@') && ["localhost", "127.0.0.1", "[::1]"].contains(&authority.host())
    })
}

/// Whether a request is a CORS preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight from an allowed origin. Every header field is allowed: no field gives a right but those that
/// carry a token, and libraries add others by themselves.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let fields =
        [(ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"), (ACCESS_CONTROL_MAX_AGE, "600")];
    let requested = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().cloned();
    let allowed = requested.map(|names| (ACCESS_CONTROL_ALLOW_HEADERS, names));
    (StatusCode::NO_CONTENT, fields, HeaderMap::from_iter(allowed)).into_response()
}

/// Lets a page of `origin` read the answer.
pub(super) fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "content-disposition, preference-applied, ratelimit, ratelimit-policy, retry-after, www-authenticate, \
             x-next-since, x-request-id",
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
        let config = Config { http, ..Config::default() };
        let allowed = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            allowed_origin(&config, "/v1/me", &headers).is_some()
        };
        assert!(allowed("https://mail.example") && allowed("http://localhost:3000"));
        for other in [
            "http://mail.example",
            "https://mail.example.evil.example",
            "null",
            "https://mail.example:8443",
            "http://localhost:3001",
        ] {
            assert!(!allowed(other), "{other}");
        }
        assert!(allowed_origin(&config, "/v1/me", &HeaderMap::new()).is_none());
    }

    #[test]
    fn allows_pages_of_this_machine_in_a_sink_where_nothing_is_managed() {
        let config = Config { sink: Some(uuid::Uuid::nil()), ..Config::default() };
        let allowed = |origin: &str, path: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            allowed_origin(&config, path, &headers).is_some()
        };
        for origin in
            ["http://localhost", "https://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:8000"]
        {
            assert!(allowed(origin, "/v1/me") && allowed(origin, "/api/domains"), "{origin}");
            for closed in ["/pro/api", "/pro/api/tokens", "/mcp"] {
                assert!(!allowed(origin, closed), "{origin} {closed}");
            }
        }
        for origin in [
            "null",
            "http://a.localhost",
            "http://localhost.evil.example",
            "ftp://localhost",
            "http://10.0.0.1",
        ] {
            assert!(!allowed(origin, "/v1/me"), "{origin}");
        }
    }
}
