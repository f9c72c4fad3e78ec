//! `X-Request-Id`: the id of a request, in its answer and in the log.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tempmail_model::chance;

use super::client::ClientResolver;

/// The header field, of requests and answers.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of an id that a proxy gave.
const LENGTH_MAX: usize = 128;

/// The id that a trusted proxy gave the request, else a new one: other clients must not choose what is
/// written to the log. A copy: the field itself would keep the buffer of the whole header section.
pub(super) fn of(headers: &HeaderMap, clients: &ClientResolver, peer: IpAddr) -> HeaderValue {
    let id = match headers.get(X_REQUEST_ID) {
        Some(given) if clients.is_trusted_proxy(peer) && is_plain(given) => {
            HeaderValue::from_bytes(given.as_bytes())
        }
        _ => HeaderValue::try_from(chance::uuid().to_string()),
    };
    id.expect("a plain id and a UUID are visible ASCII")
}

fn is_plain(id: &HeaderValue) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:".contains(b);
    (1..=LENGTH_MAX).contains(&id.len()) && id.as_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn takes_the_id_of_a_trusted_proxy_only() {
        let clients = ClientResolver::new(&Http {
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
