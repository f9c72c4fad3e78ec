//! Passwords of logins. A server takes 4,096 rounds of hashing at each connection, which is most of what a test without
//! optimization computes. Here it takes one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

const SALT: &[u8] = b"of tempmail's tests";

/// What Postgres keeps of a password: its SCRAM-SHA-256 verifier (RFC 5802, RFC 7677) with one round.
pub(super) fn verifier(password: &str) -> String {
    let salted = hmac(password.as_bytes(), &[SALT, &1_u32.to_be_bytes()].concat());
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key"));
    let server_key = hmac(&salted, b"Server Key");
    let [salt, stored_key, server_key] =
        [SALT, stored_key.as_slice(), &server_key].map(|octets| STANDARD.encode(octets));
    format!("SCRAM-SHA-256$1:{salt}${stored_key}:{server_key}")
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}
