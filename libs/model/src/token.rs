//! API tokens: `tm_live_` or `tm_pro_` and 64 lower-case hex digits of random data. The store has only
//! their SHA-256. That of a token for drop-in surfaces is another one than it would have as a live token, so wherever live
//! tokens are looked for, by whichever version of the program, it is unknown.

use std::fmt;

use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

/// Maximum characters of a token's name.
pub const TOKEN_NAME_MAX: usize = 100;
/// Maximum days until a token expires.
pub const TOKEN_DAYS_MAX: i64 = 3650;

/// Seconds that a minted token lasts unless its request says otherwise.
pub const MINTED_TOKEN_SECONDS: i64 = 600;
/// Maximum seconds that a minted token lasts.
pub const MINTED_TOKEN_SECONDS_MAX: i64 = 3600;

/// Begins what is hashed of a token for drop-in surfaces.
const SURFACE_TOKEN: &[u8] = b"surface ";

/// Whether a text is a valid name of a token: 1 to 100 characters without control characters.
pub fn is_token_name(text: &str) -> bool {
    (1..=TOKEN_NAME_MAX).contains(&text.chars().count()) && !text.contains(char::is_control)
}

/// The interface that a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `tm_pro_`: `/pro/api` and `POST /api/accounts`.
    Pro,
    /// `tm_live_`: `/v1`.
    Live,
}

impl TokenKind {
    /// The prefix of tokens of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Pro => "tm_pro_",
            Self::Live => "tm_live_",
        }
    }

    /// Its name in the interface and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pro => "pro",
            Self::Live => "live",
        }
    }
}

/// A token in plain text. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainToken(String);

impl PlainToken {
    /// A new random token.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn generate(kind: TokenKind) -> Result<Self, rand::rngs::SysError> {
        let mut random = [0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        let mut text = String::from(kind.prefix());
        for byte in random {
            text.push_str(&format!("{byte:02x}"));
        }
        Ok(Self(text))
    }

    /// The text of the token, which is shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the store keeps.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The hash that the store keeps of a token for drop-in surfaces.
    pub fn surface_hash(&self) -> TokenHash {
        TokenHash::of_surface_token(&self.0)
    }

    /// Its last four digits, which identify it in a list.
    pub fn hint(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl fmt::Debug for PlainToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainToken(…)")
    }
}

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes the token of a client; `None` unless it has the form of a token of `kind` (prefix and 64
    /// lower-case hex digits).
    pub fn from_presented(kind: TokenKind, presented: &str) -> Option<Self> {
        is_well_formed(kind, presented).then(|| Self(Sha256::digest(presented.as_bytes()).into()))
    }

    /// Hashes the token of a client of a drop-in surface; `None` unless it has the form of a live token.
    pub fn from_presented_on_surface(presented: &str) -> Option<Self> {
        is_well_formed(TokenKind::Live, presented).then(|| Self::of_surface_token(presented))
    }

    fn of_surface_token(token: &str) -> Self {
        Self(Sha256::new().chain_update(SURFACE_TOKEN).chain_update(token.as_bytes()).finalize().into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn is_well_formed(kind: TokenKind, token: &str) -> bool {
    token.strip_prefix(kind.prefix()).is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_a_presented_token_as_stored() {
        let token = PlainToken::generate(TokenKind::Live).unwrap();
        assert_eq!(token.expose().len(), 72);
        assert_eq!(TokenHash::from_presented(TokenKind::Live, token.expose()), Some(token.hash()));
        assert_eq!(TokenHash::from_presented(TokenKind::Pro, token.expose()), None);
        assert_eq!(format!("{token:?} {:?}", token.hash()), "PlainToken(…) TokenHash(…)");
    }

    #[test]
    fn hashes_a_token_for_surfaces_to_another_value_than_as_a_live_token() {
        let token = PlainToken::generate(TokenKind::Live).unwrap();
        let on_surface = TokenHash::from_presented_on_surface(token.expose());
        assert_eq!(on_surface, Some(token.surface_hash()));
        assert_ne!(on_surface, TokenHash::from_presented(TokenKind::Live, token.expose()));
        let pro = PlainToken::generate(TokenKind::Pro).unwrap();
        assert_eq!(TokenHash::from_presented_on_surface(pro.expose()), None);
    }

    #[test]
    fn rejects_upper_case_and_short_tokens() {
        let upper = format!("tm_live_{}", "A".repeat(64));
        assert_eq!(TokenHash::from_presented(TokenKind::Live, &upper), None);
        assert_eq!(TokenHash::from_presented(TokenKind::Live, "tm_live_00"), None);
    }
}
