//! The cursor of clients (`next_since`): a position in the stream of all mail, sealed (AES-256-GCM) for
//! a tenant, so that it discloses nothing and can't be forged.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::key::MasterKey;
use crate::sealer::Sealer;

/// The only stream so far; the cursor has its number so that there can be more.
const STREAM: u16 = 0;

/// A cursor that was altered or forged, or sealed for another tenant or with an unknown key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not a valid cursor of this tenant")]
pub struct InvalidCursor;

/// Seals and opens cursors. The first key seals, all keys open.
pub struct CursorSealer(Sealer);

impl CursorSealer {
    /// A sealer with keys derived from `ring`, which is not empty.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(Sealer::new(ring, "cursor"))
    }

    /// The cursor of `tenant` for the position `seq`.
    pub fn seal(&self, tenant: Uuid, seq: i64) -> String {
        let mut position = [0; 10];
        position[..2].copy_from_slice(&STREAM.to_be_bytes());
        position[2..].copy_from_slice(&seq.to_be_bytes());
        URL_SAFE_NO_PAD.encode(self.0.seal(tenant, &position))
    }

    /// The position of a cursor.
    ///
    /// # Errors
    /// [`InvalidCursor`] unless this installation sealed it for `tenant`.
    pub fn open(&self, tenant: Uuid, text: &str) -> Result<i64, InvalidCursor> {
        let sealed = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
        let position = self.0.open(tenant, &sealed).ok_or(InvalidCursor)?;
        let (stream, seq) = position.split_first_chunk::<2>().ok_or(InvalidCursor)?;
        let seq: [u8; 8] = seq.try_into().map_err(|_| InvalidCursor)?;
        if u16::from_be_bytes(*stream) != STREAM {
            return Err(InvalidCursor);
        }
        Ok(i64::from_be_bytes(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(secrets: &[(&str, u8)]) -> Vec<MasterKey> {
        secrets.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect()
    }

    #[test]
    fn opens_for_its_tenant_only() {
        let sealer = CursorSealer::new(&ring(&[("a", 1)]));
        let (tenant, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let cursor = sealer.seal(tenant, 42);
        assert_eq!(sealer.open(tenant, &cursor), Ok(42));
        assert_eq!(sealer.open(other, &cursor), Err(InvalidCursor));
    }

    #[test]
    fn rejects_an_altered_cursor() {
        let sealer = CursorSealer::new(&ring(&[("a", 1)]));
        let tenant = Uuid::from_u128(1);
        let cursor = sealer.seal(tenant, 7);
        for i in 0..cursor.len() {
            let mut altered = cursor.clone().into_bytes();
            altered[i] = if altered[i] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(sealer.open(tenant, &altered), Err(InvalidCursor), "{i}");
        }
        for junk in ["", "A", "AAAAAAAA", "%00", "🦀"] {
            assert_eq!(sealer.open(tenant, junk), Err(InvalidCursor));
        }
    }

    #[test]
    fn opens_cursors_of_the_previous_key_after_a_rotation() {
        let tenant = Uuid::from_u128(1);
        let cursor = CursorSealer::new(&ring(&[("a", 1)])).seal(tenant, 9);
        assert_eq!(CursorSealer::new(&ring(&[("b", 2), ("a", 1)])).open(tenant, &cursor), Ok(9));
        assert_eq!(CursorSealer::new(&ring(&[("b", 2)])).open(tenant, &cursor), Err(InvalidCursor));
    }
}
