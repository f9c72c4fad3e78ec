//! How a browser signs in to the dashboard and stays signed in: a link that works once, which `up` prints so that its
//! user need not copy a token, and the Pro session in a cookie that no script reads.
//!
//! Whoever makes a browser send a request has its cookies sent, too: so a cookie is honoured on `/pro/api` only, for
//! requests of the site's own pages, and changes take JSON.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};
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

/// A code that signs in as a Pro token, once and in this process only. `Debug` shows neither.
pub struct SignInLink {
    code: String,
    token: String,
}

impl SignInLink {
    /// A new random code for a `tm_pro_` token.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn generate(token: &str) -> Result<Self, rand::rngs::SysError> {
        let mut random = [0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        let code = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { code, token: token.to_owned() })
    }

    /// The code: 64 hexadecimal digits.
    pub fn code(&self) -> &str {
        &self.code
    }
}

impl fmt::Debug for SignInLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SignInLink").finish_non_exhaustive()
    }
}

/// The link of a process, if there is one, until it is used.
#[derive(Default)]
pub(crate) struct UnusedSignInLink(Mutex<Option<SignInLink>>);

impl UnusedSignInLink {
    /// Takes the link if it has this code: of several requests one gets it.
    pub(crate) fn take(&self, code: &str) -> Option<SignInLink> {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Digests: how long the comparison takes discloses nothing of the code.
        link.take_if(|link| Sha256::digest(&link.code) == Sha256::digest(code))
    }

    /// Makes a link usable, again if it could not be used.
    pub(crate) fn put(&self, link: SignInLink) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }
}

impl SignInLink {
    /// The token that it signs in as.
    pub(crate) fn token(&self) -> &str {
        &self.token
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

    #[test]
    fn works_once_and_by_its_code_only() {
        let link = SignInLink::generate("tm_pro_x").unwrap();
        let code = link.code().to_owned();
        assert!(code.len() == 64 && !format!("{link:?}").contains(&code));
        let unused = UnusedSignInLink::default();
        unused.put(link);
        assert!(unused.take("").is_none() && unused.take(&code[1..]).is_none());
        let taken = unused.take(&code).expect("the code is right");
        assert_eq!(taken.token(), "tm_pro_x");
        assert!(unused.take(&code).is_none());
        unused.put(taken);
        assert!(unused.take(&code).is_some());
    }
}
