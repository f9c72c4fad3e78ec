//! The Pro session of a browser, in a cookie that no script reads. Whoever makes a browser send a request has its
//! cookies sent, too: so it is honoured on `/pro/api` only, for requests of the site's own pages, and changes take
//! JSON.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use tempmail_runtime::config::Http;
use tempmail_runtime::known_host::is_loopback;

use super::jwt::SESSION_SECONDS;
use crate::http::error::ApiError;
use crate::http::json_body::is_json;
use crate::http::own_origin;

/// The surface that honours the cookie.
const SURFACE: &str = "/pro/api/";

/// The session that the cookie of a request presents.
///
/// # Errors
/// [`ApiError::AuthenticationRequired`] where there is none, or none that is honoured: the request has an
/// `Authorization`, or does not come from a page of the site. [`ApiError::UnsupportedMediaType`] for a change with a
/// body that is not JSON.
pub(super) fn presented<'a>(http: &Http, parts: &'a Parts) -> Result<&'a str, ApiError> {
    let headers = &parts.headers;
    let session = SessionCookie::of(http).find(headers).ok_or(ApiError::AuthenticationRequired)?;
    let is_honoured = parts.uri.path().starts_with(SURFACE)
        && !headers.contains_key(AUTHORIZATION)
        && own_origin::is_of_own_page(http, headers);
    if !is_honoured {
        return Err(ApiError::AuthenticationRequired);
    }
    let is_change = !matches!(parts.method, Method::GET | Method::HEAD);
    if is_change && headers.contains_key("content-type") && !is_json(headers) {
        return Err(ApiError::UnsupportedMediaType);
    }
    Ok(session)
}

/// Name and attributes of the cookie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionCookie {
    name: &'static str,
    attributes: &'static str,
}

impl SessionCookie {
    /// The cookie of a site. On plain http only loopback has one that works: browsers take `Secure` over https alone,
    /// and the prefix `__Host-` with it alone.
    pub(crate) fn of(http: &Http) -> Self {
        let url = http.base_url.parse::<Uri>().ok();
        let is_plain_loopback = url.as_ref().is_some_and(|url| {
            url.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
                && url.host().is_some_and(is_loopback)
        });
        if is_plain_loopback {
            Self { name: "tempmail", attributes: "Path=/pro/api; HttpOnly; SameSite=Strict" }
        } else {
            Self { name: "__Host-tempmail", attributes: "Path=/; Secure; HttpOnly; SameSite=Strict" }
        }
    }

    /// The value of `Set-Cookie` that keeps a session, until it expires.
    ///
    /// # Errors
    /// The session is no JWT.
    pub(crate) fn set(self, session: &str) -> Result<HeaderValue, ApiError> {
        let Self { name, attributes } = self;
        HeaderValue::try_from(format!("{name}={session}; {attributes}; Max-Age={SESSION_SECONDS}"))
            .map_err(|_not_ascii| ApiError::Internal)
    }

    /// The value of `Set-Cookie` that removes it.
    ///
    /// # Errors
    /// None in fact.
    pub(crate) fn remove(self) -> Result<HeaderValue, ApiError> {
        let Self { name, attributes } = self;
        HeaderValue::try_from(format!("{name}=; {attributes}; Max-Age=0"))
            .map_err(|_not_ascii| ApiError::Internal)
    }

    /// The value of the cookie, if it is there once. Whoever may set a second one must not choose which counts.
    fn find(self, headers: &HeaderMap) -> Option<&str> {
        // By octets: another cookie of the site need not be ASCII.
        let pairs =
            headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|octet| *octet == b';'));
        let mut values = pairs.filter_map(|pair| {
            let at = pair.iter().position(|octet| *octet == b'=')?;
            (pair[..at].trim_ascii() == self.name.as_bytes()).then_some(pair[at + 1..].trim_ascii())
        });
        let value = values.next().filter(|value| !value.is_empty())?;
        values.next().is_none().then(|| std::str::from_utf8(value).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(base_url: &str) -> SessionCookie {
        SessionCookie::of(&Http { base_url: base_url.into(), ..Http::default() })
    }

    #[test]
    fn is_secure_but_on_plain_loopback() {
        let set = |base_url| cookie(base_url).set("a.b.c").unwrap().to_str().unwrap().to_owned();
        let secure = "__Host-tempmail=a.b.c; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200";
        for site in ["https://mail.example", "http://mail.example", "https://localhost:8080"] {
            assert_eq!(set(site), secure, "{site}");
        }
        let plain = "tempmail=a.b.c; Path=/pro/api; HttpOnly; SameSite=Strict; Max-Age=43200";
        for site in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080"] {
            assert_eq!(set(site), plain, "{site}");
        }
        let removed = cookie("http://localhost").remove().unwrap();
        assert_eq!(removed, "tempmail=; Path=/pro/api; HttpOnly; SameSite=Strict; Max-Age=0");
    }

    #[test]
    fn finds_its_value_where_it_is_there_once() {
        let find = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(COOKIE, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            cookie("https://mail.example").find(&headers).map(str::to_owned)
        };
        for one in ["a=b; __Host-tempmail=x.y.z; c=d", "caf\u{e9}=\u{e9}; __Host-tempmail = x.y.z ;"] {
            assert_eq!(find(&[one]), Some("x.y.z".into()), "{one}");
        }
        for none in [
            &[][..],
            &["tempmail=x"],
            &["__Host-tempmail="],
            &["x__Host-tempmail=x"],
            &["__Host-tempmail=x; __Host-tempmail=x"],
            &["__Host-tempmail=x", "__Host-tempmail=y"],
        ] {
            assert_eq!(find(none), None, "{none:?}");
        }
    }
}
