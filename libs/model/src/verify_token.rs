//! The token in the TXT record of a custom domain: a MAC of tenant and domain. It is the same when the
//! tenant creates the domain again, and useless to other tenants.

use std::fmt;

use aws_lc_rs::hmac;
use uuid::Uuid;

use crate::key::MasterKey;

/// What precedes the token in the TXT record.
const TXT_PREFIX: &str = "tempmail-verify=";

/// Bytes of the MAC in the token: 128 bits.
const TOKEN_BYTES: usize = 16;

/// The key of verify tokens. `Debug` does not show it.
#[derive(Clone)]
pub struct VerifyTokenKey {
    key: hmac::Key,
}

impl VerifyTokenKey {
    /// Derives the key from the first of `secrets.keys`.
    pub fn new(master: &MasterKey) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &master.derive("domain-verify")) }
    }

    /// The token for a domain (A-labels) of a tenant: 32 lower-case hex digits.
    pub fn token_for(&self, tenant: Uuid, domain: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(tenant.as_bytes());
        context.update(domain.as_bytes());
        let mac = context.sign();
        mac.as_ref()[..TOKEN_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for VerifyTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyTokenKey(…)")
    }
}

/// The name of the TXT record of a domain.
pub fn txt_host(domain: &str) -> String {
    format!("_tempmail.{domain}")
}

/// The value of the TXT record with this token.
pub fn txt_value(token: &str) -> String {
    format!("{TXT_PREFIX}{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_by_tenant_and_domain() {
        let master = MasterKey::new("a", &[7; 32]).unwrap();
        let key = VerifyTokenKey::new(&master);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let token = key.token_for(one, "ships.example");
        assert_eq!(
            token,
            VerifyTokenKey::new(&master).token_for(one, "ships.example"),
            "it is deterministic"
        );
        assert_ne!(token, key.token_for(two, "ships.example"));
        assert_ne!(token, key.token_for(one, "boats.example"));
        assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!(txt_host("ships.example"), "_tempmail.ships.example");
        assert_eq!(txt_value("ab"), "tempmail-verify=ab");
        assert!(!format!("{key:?}").contains('7'));
    }
}
