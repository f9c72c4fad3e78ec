//! `X-Request-Id`: names a request in its answer and in the log, so that one is found by the
//! other.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::client::ClientRule;

/// The header field, of requests and answers.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of an id that a proxy gave.
const LENGTH_MAX: usize = 128;

/// The id that a trusted proxy gave the request, else a new one. Nobody else may choose what
/// is written to the log. A copy: the field itself holds all octets of the header section.
pub(super) fn of(headers: &HeaderMap, clients: &ClientRule, peer: IpAddr) -> HeaderValue {
    let id = match headers.get(X_REQUEST_ID) {
        Some(given) if clients.is_trusted_proxy(peer) && is_plain(given) => {
            HeaderValue::from_bytes(given.as_bytes())
        }
        _ => HeaderValue::try_from(Uuid::new_v4().to_string()),
    };
    id.expect("what is plain, and a UUID, are visible ASCII")
}

fn is_plain(id: &HeaderValue) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:".contains(b);
    (1..=LENGTH_MAX).contains(&id.len()) && id.as_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;

    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_requests() {
        let clients = ClientRule::new(&Http {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..Http::default()
        });
        let of = |peer: &str, id: &str| {
            let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::try_from(id).unwrap())]);
            of(&headers, &clients, peer.parse().unwrap()).to_str().unwrap().to_owned()
        };
        assert_eq!(of("10.0.0.1", "req_1.a:b-c"), "req_1.a:b-c");
        assert_ne!(of("192.0.2.1", "req_1"), "req_1");
        for wrong in ["", "a b", "name@inbox.example", &"x".repeat(129)] {
            assert!(Uuid::try_parse(&of("10.0.0.1", wrong)).is_ok(), "{wrong}");
        }
    }
}
