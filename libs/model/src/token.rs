//! API tokens: `tm_live_` or `tm_pro_` and 64 lower-case hex digits of OS randomness. The
//! store keeps their SHA-256 only.

use std::fmt;

use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

/// Characters of a token's name at most.
pub const TOKEN_NAME_MAX: usize = 100;
/// Days after which a token that expires does so at the latest.
pub const TOKEN_DAYS_MAX: i64 = 3650;

/// Whether a token may be called that: 1 to 100 characters, none of them a control character.
pub fn is_token_name(text: &str) -> bool {
    (1..=TOKEN_NAME_MAX).contains(&text.chars().count()) && !text.contains(char::is_control)
}

/// Which surface a token is for.
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

    /// The word for it in the interface and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pro => "pro",
            Self::Live => "live",
        }
    }
}

/// A token as its holder has it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainToken(String);

impl PlainToken {
    /// A new token from the operating system's randomness.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn generate(kind: TokenKind) -> Result<Self, rand::rngs::SysError> {
        let mut random = [0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut random)?;
        let mut text = String::from(kind.prefix());
        for byte in random {
            text.push_str(&format!("{byte:02x}"));
        }
        Ok(Self(text))
    }

    /// The token, to be shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the store keeps of it.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Its last four digits, to tell tokens apart in a list.
    pub fn hint(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl fmt::Debug for PlainToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainToken(…)")
    }
}

/// SHA-256 of a presented token of a known form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes what a client presented; `None` where it has not the form of a token of `kind`
    /// (right prefix, 64 lower-case hex digits).
    pub fn from_presented(kind: TokenKind, presented: &str) -> Option<Self> {
        let digits = presented.strip_prefix(kind.prefix())?;
        let well_formed =
            digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        well_formed.then(|| Self(Sha256::digest(presented.as_bytes()).into()))
    }

    /// The 32 octets.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
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
    fn a_presented_token_hashes_as_stored() {
        let token = PlainToken::generate(TokenKind::Live).unwrap();
        assert_eq!(token.expose().len(), 72);
        assert_eq!(TokenHash::from_presented(TokenKind::Live, token.expose()), Some(token.hash()));
        assert_eq!(TokenHash::from_presented(TokenKind::Pro, token.expose()), None);
        assert_eq!(format!("{token:?} {:?}", token.hash()), "PlainToken(…) TokenHash(…)");
    }

    #[test]
    fn upper_case_or_short_is_no_token() {
        let upper = format!("tm_live_{}", "A".repeat(64));
        assert_eq!(TokenHash::from_presented(TokenKind::Live, &upper), None);
        assert_eq!(TokenHash::from_presented(TokenKind::Live, "tm_live_00"), None);
    }
}
