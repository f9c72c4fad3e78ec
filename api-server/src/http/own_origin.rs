//! Whether a request comes from a page of the site itself. Browsers do not apply the same-origin policy to WebSockets
//! (RFC 6455 10.2), nor to cookies, so the server does.

use std::borrow::Cow;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use tempmail_runtime::config::Http;

use super::cors::origin_of;

/// What browsers say of the page that a request comes from (Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Addresses that count as `localhost`.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "[::1]"];

/// Whether a request comes from a page of the site itself, or has no origin because it comes from no
/// browser.
pub(crate) fn is_own(http: &Http, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else { return false };
    origin_of(&http.base_url).is_some_and(|own| canonical(&own) == canonical(origin))
}

/// Whether a browser says that a request comes from a page of the site itself: by its `Origin` or, where it has none,
/// by `Sec-Fetch-Site: same-origin`.
pub(crate) fn is_of_own_page(http: &Http, headers: &HeaderMap) -> bool {
    if headers.contains_key(ORIGIN) {
        return is_own(http, headers);
    }
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    matches!((sites.next(), sites.next()), (Some(site), None) if site == "same-origin")
}

/// Whether a request to a listener without a configured origin comes from one of its own pages, or from no page: its
/// `Origin`, if it has one, names the host that the request names, and no browser says that the page is of another site
/// or port.
pub(super) fn is_of_same_host(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    if sites.any(|site| site != "same-origin" && site != "none") {
        return false;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
    origins.next().is_none() && host.is_some() && authority == host
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
    fn knows_a_page_of_its_own_by_origin_or_fetch_metadata() {
        let http = Http { base_url: "https://mail.example".into(), ..Http::default() };
        let is_own = |fields: &[(&'static str, &'static str)]| {
            let fields =
                fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            is_of_own_page(&http, &fields.collect::<HeaderMap>())
        };
        assert!(is_own(&[("origin", "https://mail.example")]));
        assert!(is_own(&[("sec-fetch-site", "same-origin")]));
        for foreign in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!is_own(foreign), "{foreign:?}");
        }
    }

    #[test]
    fn knows_pages_of_the_same_host_and_requests_of_no_page() {
        let is_own = |fields: &[(&'static str, &'static str)]| {
            let fields = fields.iter().chain(&[("host", "localhost:8025")]);
            let fields = fields.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            let mut headers = HeaderMap::new();
            fields.for_each(|(name, value)| {
                headers.append(name, value);
            });
            is_of_same_host(&headers)
        };
        assert!(is_own(&[]));
        assert!(is_own(&[("sec-fetch-site", "none")]));
        assert!(is_own(&[("origin", "http://localhost:8025"), ("sec-fetch-site", "same-origin")]));
        for foreign in [
            &[("origin", "null")][..],
            &[("origin", "http://localhost:8080")],
            &[("origin", "http://localhost")],
            &[("origin", "https://evil.example")],
            &[("origin", "http://localhost:8025"), ("origin", "http://localhost:8025")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://localhost:8025"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!is_own(foreign), "{foreign:?}");
        }
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
