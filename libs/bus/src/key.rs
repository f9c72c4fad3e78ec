//! What requests are counted by.

use std::net::IpAddr;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A key under which requests or failures are counted: an id, or a digest, so that no address
/// leaves the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateKey(Uuid);

impl RateKey {
    /// The key of everything that is described by these parts, in this order.
    pub fn from_parts(parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&digest.finalize()[..16]);
        Self(Uuid::from_bytes(key))
    }

    /// The id or digest.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<IpAddr> for RateKey {
    /// An IPv4 address and its mapped form are one.
    fn from(address: IpAddr) -> Self {
        let v6 = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self::from_parts(&[&v6.octets()])
    }
}

impl From<Uuid> for RateKey {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(RateKey::from_parts(&[b"ab", b"c"]), RateKey::from_parts(&[b"a", b"bc"]));
        assert_eq!(RateKey::from_parts(&[b"ab", b"c"]), RateKey::from_parts(&[b"ab", b"c"]));
    }
}
