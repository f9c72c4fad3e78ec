//! What the TXT record of a custom domain carries: a MAC of tenant and domain, so that it is the
//! same when the tenant makes the domain again, and of no use to another tenant.

use std::fmt;

use aws_lc_rs::hmac;
use uuid::Uuid;

use crate::key::MasterKey;

/// What a TXT record has before the token.
const TXT_PREFIX: &str = "tempmail-verify=";

/// Octets of the MAC that are shown: 128 bit.
const TOKEN_OCTETS: usize = 16;

/// Makes verify tokens. `Debug` shows no key.
#[derive(Clone)]
pub struct VerifyTokenKey {
    key: hmac::Key,
}

impl VerifyTokenKey {
    /// Under a key derived from the first of `secrets.keys`.
    pub fn new(master: &MasterKey) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &master.derive("domain-verify")) }
    }

    /// The token of a tenant's domain (A-labels): 32 lower-case hex digits.
    pub fn token_for(&self, tenant: Uuid, domain: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(tenant.as_bytes());
        context.update(domain.as_bytes());
        let mac = context.sign();
        mac.as_ref()[..TOKEN_OCTETS].iter().map(|octet| format!("{octet:02x}")).collect()
    }
}

impl fmt::Debug for VerifyTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyTokenKey(…)")
    }
}

/// Where the TXT record of a domain goes.
pub fn txt_host(domain: &str) -> String {
    format!("_tempmail.{domain}")
}

/// What the TXT record with this token says.
pub fn txt_value(token: &str) -> String {
    format!("{TXT_PREFIX}{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_tenant_and_one_domain() {
        let master = MasterKey::new("a", &[7; 32]).unwrap();
        let key = VerifyTokenKey::new(&master);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let token = key.token_for(one, "ships.example");
        assert_eq!(
            token,
            VerifyTokenKey::new(&master).token_for(one, "ships.example"),
            "made again, it is the same"
        );
        assert_ne!(token, key.token_for(two, "ships.example"));
        assert_ne!(token, key.token_for(one, "boats.example"));
        assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!(txt_host("ships.example"), "_tempmail.ships.example");
        assert_eq!(txt_value("ab"), "tempmail-verify=ab");
        assert!(!format!("{key:?}").contains('7'));
    }
}
