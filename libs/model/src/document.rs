//! The address of a document: which message it shows, and to whom, sealed (AES-256-GCM-SIV), so that every process opens it
//! and nobody can make one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use uuid::Uuid;

use crate::key::MasterKey;
use crate::sealer::Sealer;

/// The format of an address: its first octet.
const FORMAT: u8 = 1;
/// Octets of an address before it is sealed: format, kind of reader, remote images, message, end, two ids and a number.
const LENGTH: usize = 1 + 1 + 1 + 16 + 8 + 16 + 16 + 8;
/// Characters of an address at most; what is longer is none.
const TEXT_MAX: usize = 256;

/// Who a document is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentReader {
    /// The holder of a JWT of a mailbox.
    Mailbox {
        /// The mailbox.
        mailbox: Uuid,
        /// Its password epoch.
        epoch: i64,
    },
    /// The holder of a Pro token, or of a session of it.
    Token {
        /// The token.
        token: Uuid,
        /// The session, if one was presented.
        session: Option<Uuid>,
    },
}

/// What the address of a document says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentTicket {
    /// The message.
    pub message: Uuid,
    /// Who may open it.
    pub reader: DocumentReader,
    /// Whether remote images are loaded.
    pub remote: bool,
    /// When it can't be opened any more, to the millisecond.
    pub expires_at: Timestamp,
}

/// Seals and opens addresses. The first key seals, all keys open.
pub struct DocumentSealer(Sealer);

impl DocumentSealer {
    /// A sealer with keys derived from `ring`, which is not empty.
    pub fn new(ring: &[MasterKey]) -> Self {
        Self(Sealer::new(ring, "document"))
    }

    /// An address, in characters that need no escape in a URL; each call gives another one.
    pub fn seal(&self, ticket: &DocumentTicket) -> String {
        let (kind, first, second, number) = match ticket.reader {
            DocumentReader::Mailbox { mailbox, epoch } => (0, mailbox, Uuid::nil(), epoch),
            DocumentReader::Token { token, session: None } => (1, token, Uuid::nil(), 0),
            DocumentReader::Token { token, session: Some(session) } => (2, token, session, 0),
        };
        let mut plain = Vec::with_capacity(LENGTH);
        plain.extend([FORMAT, kind, u8::from(ticket.remote)]);
        plain.extend(ticket.message.as_bytes());
        plain.extend(ticket.expires_at.as_millisecond().to_be_bytes());
        plain.extend(first.as_bytes());
        plain.extend(second.as_bytes());
        plain.extend(number.to_be_bytes());
        URL_SAFE_NO_PAD.encode(self.0.seal(Uuid::nil(), &plain))
    }

    /// What an address says; `None` unless this installation sealed it.
    pub fn open(&self, text: &str) -> Option<DocumentTicket> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain: [u8; LENGTH] = self.0.open(Uuid::nil(), &sealed)?.try_into().ok()?;
        let ([format, kind, remote], rest) = plain.split_first_chunk::<3>()?;
        let (message, rest) = rest.split_first_chunk::<16>()?;
        let (expires_at, rest) = rest.split_first_chunk::<8>()?;
        let (first, rest) = rest.split_first_chunk::<16>()?;
        let (second, rest) = rest.split_first_chunk::<16>()?;
        let (number, _) = rest.split_first_chunk::<8>()?;
        let (first, second) = (Uuid::from_bytes(*first), Uuid::from_bytes(*second));
        if *format != FORMAT {
            return None;
        }
        let reader = match kind {
            0 => DocumentReader::Mailbox { mailbox: first, epoch: i64::from_be_bytes(*number) },
            1 => DocumentReader::Token { token: first, session: None },
            2 => DocumentReader::Token { token: first, session: Some(second) },
            _ => return None,
        };
        Some(DocumentTicket {
            message: Uuid::from_bytes(*message),
            reader,
            remote: *remote != 0,
            expires_at: Timestamp::from_millisecond(i64::from_be_bytes(*expires_at)).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(octet: u8) -> DocumentSealer {
        DocumentSealer::new(&[MasterKey::new("a", &[octet; 32]).unwrap()])
    }

    fn ticket(reader: DocumentReader) -> DocumentTicket {
        let expires_at = "2026-11-21T10:00:00.123Z".parse().unwrap();
        DocumentTicket { message: Uuid::from_u128(7), reader, remote: true, expires_at }
    }

    #[test]
    fn opens_what_this_installation_sealed() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for reader in [
            DocumentReader::Mailbox { mailbox: one, epoch: -3 },
            DocumentReader::Token { token: one, session: None },
            DocumentReader::Token { token: one, session: Some(two) },
        ] {
            let sealed = sealer(1).seal(&ticket(reader));
            assert_eq!(sealer(1).open(&sealed), Some(ticket(reader)));
            assert_eq!(sealer(2).open(&sealed), None);
            assert_ne!(sealer(1).seal(&ticket(reader)), sealed);
            assert!(
                sealed.len() <= TEXT_MAX
                    && sealed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            );
        }
    }

    #[test]
    fn rejects_altered_addresses() {
        let sealed = sealer(1).seal(&ticket(DocumentReader::Token { token: Uuid::nil(), session: None }));
        for at in 0..sealed.len() {
            let mut altered = sealed.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer(1).open(&String::from_utf8(altered).unwrap()), None, "{at}");
        }
        for junk in ["", "A", "%00", &"A".repeat(100_000)] {
            assert_eq!(sealer(1).open(junk), None);
        }
    }
}
