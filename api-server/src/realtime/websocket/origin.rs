//! Which pages may connect. Browsers do not apply the same-origin policy to WebSockets, so the server does
//! (RFC 6455 10.2).

use std::borrow::Cow;

use axum::http::HeaderMap;
use axum::http::header::ORIGIN;
use tempmail_runtime::config::Http;

use crate::http::cors::origin_of;

/// Addresses that count as `localhost`.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "[::1]"];

/// Whether a request comes from a page of the site itself, or has no origin because it comes from no
/// browser.
pub(super) fn is_own(http: &Http, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else { return false };
    origin_of(&http.base_url).is_some_and(|own| canonical(&own) == canonical(origin))
}

/// An origin with `localhost` in place of a loopback address.
fn canonical(origin: &str) -> Cow<'_, str> {
    let Some((scheme, authority)) = origin.split_once("://") else { return origin.into() };
    let port = LOOPBACK.iter().find_map(|name| authority.strip_prefix(name));
    match port.filter(|port| port.is_empty() || port.starts_with(':')) {
        Some(port) => format!("{scheme}://localhost{port}").into(),
        None => origin.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(base_url: &str, origins: &[&str]) -> bool {
        let http = Http {
            base_url: base_url.into(),
            cors_origins: vec!["https://app.example".into()],
            ..Http::default()
        };
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(ORIGIN, origin.parse().unwrap());
        }
        is_own(&http, &headers)
    }

    #[test]
    fn allows_the_own_origin_and_requests_without_an_origin() {
        let site = "https://Mail.example:443";
        assert!(is_allowed(site, &[]) && is_allowed(site, &["https://mail.example"]));
        for other in [
            "",
            "null",
            "http://mail.example",
            "https://mail.example:8443",
            "https://mail.example.evil.example",
            "https://evil.example",
            "https://app.example",
            "https://localhost",
        ] {
            assert!(!is_allowed(site, &[other]), "{other}");
        }
        assert!(!is_allowed(site, &["https://mail.example", "https://mail.example"]));
    }

    #[test]
    fn treats_all_loopback_names_as_one() {
        for site in ["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"] {
            for origin in ["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"] {
                assert!(is_allowed(site, &[origin]), "{site} {origin}");
            }
            for other in ["http://localhost", "https://localhost:8080", "http://127.0.0.1.evil.example:8080"]
            {
                assert!(!is_allowed(site, &[other]), "{site} {other}");
            }
        }
    }
}
