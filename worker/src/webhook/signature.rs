//! The header fields that sign a request: our own, and those of Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

/// Prefix of a secret; what follows is the key of Standard Webhooks in Base64.
const PREFIX: &str = "whsec_";

/// The fields of a request that starts at `started_at`.
pub(super) fn headers(secret: &str, event_id: &str, started_at: Timestamp, body: &[u8]) -> HeaderMap {
    let seconds = started_at.as_second().to_string();
    let own = mac(secret.as_bytes(), &[seconds.as_bytes(), b".", body]);
    let hex: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    let encoded = secret.strip_prefix(PREFIX).unwrap_or(secret);
    let key = STANDARD.decode(encoded).unwrap_or_default();
    let standard = mac(&key, &[event_id.as_bytes(), b".", seconds.as_bytes(), b".", body]);
    let fields = [
        ("x-webhook-id", event_id.to_owned()),
        ("x-webhook-timestamp", seconds.clone()),
        ("x-webhook-signature", format!("sha256={hex}")),
        ("webhook-id", event_id.to_owned()),
        ("webhook-timestamp", seconds),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(standard))),
        ("content-type", "application/json".to_owned()),
    ];
    fields
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::try_from(value).expect("ids, digits and Base64 are ASCII");
            (HeaderName::from_static(name), value)
        })
        .collect()
}

/// HMAC-SHA256 of the concatenated parts.
fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed with Python's `hmac`.
    #[test]
    fn signs_as_the_interface_and_standard_webhooks_specify() {
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let started_at = Timestamp::from_second(1_700_000_000).unwrap();
        let headers = headers(secret, "evt_1", started_at, b"{\"a\":1}");
        assert_eq!(headers["x-webhook-timestamp"], "1700000000");
        assert_eq!(headers["x-webhook-id"], headers["webhook-id"]);
        assert_eq!(
            headers["x-webhook-signature"],
            "sha256=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f"
        );
        assert_eq!(headers["webhook-signature"], "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek=");
    }
}
