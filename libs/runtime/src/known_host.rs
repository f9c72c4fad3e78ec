//! Which hosts a request may name (`http.check_host`). A page of another site may make a name of its own resolve to
//! loopback, and then be of the same origin as what listens there; its requests still name that host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use crate::config::Http;

/// Whether a request names a known host, where requests must.
pub fn is_known(http: &Http, uri: &Uri, headers: &HeaderMap) -> bool {
    !http.check_host || is_own(http, uri, headers)
}

/// Whether a request names a known host: that of `http.base_url`, loopback, or one of `http.hosts`. The port is of no
/// interest.
pub fn is_own(http: &Http, uri: &Uri, headers: &HeaderMap) -> bool {
    let mut named = headers.get_all(HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else { return false };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    // A request in absolute form names its host twice.
    host.is_some_and(|host| is_known_host(http, host.host()))
        && uri.host().is_none_or(|host| is_known_host(http, host))
}

fn is_known_host(http: &Http, host: &str) -> bool {
    let own = http.base_url.parse::<Uri>().ok();
    let own = own.as_ref().and_then(Uri::host);
    own.into_iter().chain(http.hosts.iter().map(String::as_str)).any(|known| known.eq_ignore_ascii_case(host))
        || is_loopback(host)
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
        is_known(&http, &Uri::from_static("/"), &headers)
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
        assert!(!accepts(&[]) && !accepts(&["localhost", "localhost"]));
    }

    #[test]
    fn compares_both_hosts_of_a_request_in_absolute_form() {
        let http = Http { check_host: true, ..Http::default() };
        let headers = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        assert!(is_known(&http, &Uri::from_static("http://localhost/v1/config"), &headers));
        assert!(!is_known(&http, &Uri::from_static("http://evil.example/v1/config"), &headers));
    }

    #[test]
    fn accepts_any_host_unless_it_checks() {
        assert!(is_known(&Http::default(), &Uri::from_static("/"), &HeaderMap::new()));
    }
}
