//! Which hosts a request may name (`http.check_host`). A page of another site may make a name of its own resolve to
//! loopback, and then be of the same origin as what listens there; its requests still name that host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use crate::config::Http;

/// The longest host in a message.
const HOST_MAX: usize = 255;

/// A host that a request names and that is not one of this service's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The service is not known as {0:?}; send the request to its own address, or add the host to `http.hosts`."
)]
pub struct ForeignHost(String);

/// Requires that a request names a known host, where `http.check_host` is on.
///
/// # Errors
/// As [`require_known`].
pub fn check(http: &Http, uri: &Uri, headers: &HeaderMap) -> Result<(), ForeignHost> {
    if http.check_host { require_known(http, uri, headers) } else { Ok(()) }
}

/// Requires that a request names a known host: that of `http.base_url`, loopback, or one of `http.hosts`. The port is of
/// no interest. A request without a host comes from no browser, and is a health check in most cases.
///
/// # Errors
/// [`ForeignHost`].
pub fn require_known(http: &Http, uri: &Uri, headers: &HeaderMap) -> Result<(), ForeignHost> {
    let fields: Vec<_> =
        headers.get_all(HOST).iter().map(|host| String::from_utf8_lossy(host.as_bytes())).collect();
    let field = (!fields.is_empty()).then(|| fields.join(", "));
    // A request in absolute form names its host twice.
    let target = uri.authority().map(Authority::to_string);
    match field.into_iter().chain(target).find(|host| !is_known(http, host)) {
        Some(host) => Err(ForeignHost(host.chars().take(HOST_MAX).collect())),
        None => Ok(()),
    }
}

fn is_known(http: &Http, named: &str) -> bool {
    let Ok(named) = named.parse::<Authority>() else { return false };
    let own = http.base_url.parse::<Uri>().ok();
    let own = own.as_ref().and_then(Uri::host);
    let mut known = own.into_iter().chain(http.hosts.iter().map(String::as_str));
    known.any(|known| known.eq_ignore_ascii_case(named.host())) || is_loopback(named.host())
}

/// Whether a host is `localhost`, a name under it, or a loopback address.
pub fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    if let Some(v6) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return v6.parse::<Ipv6Addr>().is_ok_and(|address| IpAddr::V6(address).to_canonical().is_loopback());
    }
    host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(hosts: &[&str]) -> bool {
        let http = Http {
            base_url: "https://Mail.example:8443".into(),
            check_host: true,
            hosts: vec!["mail.internal".into()],
            ..Http::default()
        };
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        check(&http, &Uri::from_static("/"), &headers).is_ok()
    }

    #[test]
    fn knows_the_own_host_loopback_and_those_of_the_setting() {
        for known in [
            "mail.example",
            "MAIL.example:80",
            "mail.internal:1",
            "localhost:8080",
            "inbox.localhost",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]:8080",
        ] {
            assert!(accepts(&[known]), "{known}");
        }
        for unknown in [
            "",
            "evil.example",
            "mail.example.evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "192.0.2.1",
            "[2001:db8::1]",
            "mail.example@evil.example",
        ] {
            assert!(!accepts(&[unknown]), "{unknown}");
        }
        assert!(!accepts(&["localhost", "localhost"]));
    }

    #[test]
    fn accepts_a_request_without_a_host() {
        assert!(accepts(&[]));
    }

    #[test]
    fn compares_both_hosts_of_a_request_in_absolute_form() {
        let http = Http { check_host: true, ..Http::default() };
        let headers = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        assert!(check(&http, &Uri::from_static("http://localhost/v1/config"), &headers).is_ok());
        let foreign = check(&http, &Uri::from_static("http://evil.example:1/v1/config"), &headers);
        assert_eq!(foreign, Err(ForeignHost("evil.example:1".into())));
    }

    #[test]
    fn accepts_any_host_unless_it_checks() {
        let headers = HeaderMap::from_iter([(HOST, "evil.example".parse().unwrap())]);
        assert!(check(&Http::default(), &Uri::from_static("/"), &headers).is_ok());
    }
}
