//! The cursor of clients (`next_since`): a position in the stream of all mail, sealed (AES-256-GCM-SIV) for
//! a tenant, so that it discloses nothing and can't be forged.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::key::MasterKey;
use crate::sealer::Sealer;

/// The format of a cursor: its first two octets. The generation (16) and the position (8) follow.
const FORMAT: u16 = 1;
/// Octets of a cursor before it is sealed.
const LENGTH: usize = 26;

/// A position in a generation of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The generation.
    pub generation: Uuid,
    /// The position: everything up to it was scanned.
    pub seq: i64,
}

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

    /// The cursor of `tenant` for the position `seq` of a generation.
    pub fn seal(&self, tenant: Uuid, generation: Uuid, seq: i64) -> String {
        let mut cursor = [0; LENGTH];
        cursor[..2].copy_from_slice(&FORMAT.to_be_bytes());
        cursor[2..18].copy_from_slice(generation.as_bytes());
        cursor[18..].copy_from_slice(&seq.to_be_bytes());
        URL_SAFE_NO_PAD.encode(self.0.seal(tenant, &cursor))
    }

    /// The position of a cursor.
    ///
    /// # Errors
    /// [`InvalidCursor`] unless this installation sealed it for `tenant`.
    pub fn open(&self, tenant: Uuid, text: &str) -> Result<Cursor, InvalidCursor> {
        let sealed = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
        let opened = self.0.open(tenant, &sealed).ok_or(InvalidCursor)?;
        let (format, rest) = opened.split_first_chunk::<2>().ok_or(InvalidCursor)?;
        let (generation, seq) = rest.split_first_chunk::<16>().ok_or(InvalidCursor)?;
        let seq: [u8; 8] = seq.try_into().map_err(|_| InvalidCursor)?;
        if u16::from_be_bytes(*format) != FORMAT {
            return Err(InvalidCursor);
        }
        Ok(Cursor { generation: Uuid::from_bytes(*generation), seq: i64::from_be_bytes(seq) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATION: Uuid = Uuid::from_u128(77);

    fn ring(secrets: &[(&str, u8)]) -> Vec<MasterKey> {
        secrets.iter().map(|(kid, octet)| MasterKey::new(*kid, &[*octet; 32]).unwrap()).collect()
    }

    fn cursor(seq: i64) -> Cursor {
        Cursor { generation: GENERATION, seq }
    }

    #[test]
    fn opens_for_its_tenant_only() {
        let sealer = CursorSealer::new(&ring(&[("a", 1)]));
        let (tenant, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let sealed = sealer.seal(tenant, GENERATION, 42);
        assert_eq!(sealer.open(tenant, &sealed), Ok(cursor(42)));
        assert_eq!(sealer.open(other, &sealed), Err(InvalidCursor));
    }

    #[test]
    fn rejects_a_cursor_of_another_format() {
        let ring = ring(&[("a", 1)]);
        let tenant = Uuid::from_u128(1);
        let open = |octets: &[u8]| {
            let sealed = URL_SAFE_NO_PAD.encode(Sealer::new(&ring, "cursor").seal(tenant, octets));
            CursorSealer::new(&ring).open(tenant, &sealed)
        };
        let mut octets = [0; LENGTH];
        octets[1] = 1;
        assert_eq!(open(&octets), Ok(Cursor { generation: Uuid::nil(), seq: 0 }));
        assert_eq!(open(&octets[..LENGTH - 1]), Err(InvalidCursor));
        assert_eq!(open(&[&octets[..], &[0]].concat()), Err(InvalidCursor));
        octets[1] = 2;
        assert_eq!(open(&octets), Err(InvalidCursor));
    }

    #[test]
    fn rejects_an_altered_cursor() {
        let sealer = CursorSealer::new(&ring(&[("a", 1)]));
        let tenant = Uuid::from_u128(1);
        let cursor = sealer.seal(tenant, GENERATION, 7);
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
        let sealed = CursorSealer::new(&ring(&[("a", 1)])).seal(tenant, GENERATION, 9);
        assert_eq!(CursorSealer::new(&ring(&[("b", 2), ("a", 1)])).open(tenant, &sealed), Ok(cursor(9)));
        assert_eq!(CursorSealer::new(&ring(&[("b", 2)])).open(tenant, &sealed), Err(InvalidCursor));
    }
}
