//! The live token, which is never printed.

use std::fmt;

use http::HeaderValue;

/// A text that is not a live token. It is not quoted: it may be another secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a live token is `tm_live_` and 64 digits of 0-9 and a-f")]
pub struct InvalidToken;

/// A `tm_live_` token.
#[derive(Clone, PartialEq, Eq)]
pub struct LiveToken(String);

impl LiveToken {
    /// Parses a token.
    ///
    /// # Errors
    /// [`InvalidToken`].
    pub fn parse(text: &str) -> Result<Self, InvalidToken> {
        let digits = text.strip_prefix("tm_live_").ok_or(InvalidToken)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != 64 || !digits.bytes().all(is_digit) {
            return Err(InvalidToken);
        }
        Ok(Self(text.to_owned()))
    }

    /// The value of the header `x-api-token`, which logs of HTTP leave out.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for LiveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_live_tokens_only_and_prints_none() {
        let text = format!("tm_live_{}", "0f".repeat(32));
        assert_eq!(format!("{:?}", LiveToken::parse(&text).unwrap()), "LiveToken(…)");
        for other in [
            "",
            "tm_live_",
            &text[1..],
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace("live", "pro"),
        ] {
            assert_eq!(LiveToken::parse(other), Err(InvalidToken), "{other}");
        }
    }
}
