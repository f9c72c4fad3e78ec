//! The prefix of the Postgres roles that `migrate` grants rights to: roles are a server's, so installations that share
//! one need different prefixes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Octets of a name in Postgres, less those of the longest ending, `_operator`.
const MAX_LEN: usize = 63 - 9;

/// The text before `_ingest`, `_api`, `_worker` and `_operator`: an identifier that needs no quoting, of at most 54
/// octets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RolePrefix(String);

/// A text that can't be a prefix.
#[derive(Debug, thiserror::Error)]
#[error("a prefix of roles has 1 to 54 of a-z, 0-9 and _, begins with a letter or _, and is not pg or pg_…")]
pub struct InvalidRolePrefix;

impl RolePrefix {
    /// That of an installation which shares its server with no other.
    pub const DEFAULT: &str = "tempmail";
}

impl Default for RolePrefix {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl TryFrom<String> for RolePrefix {
    type Error = InvalidRolePrefix;

    fn try_from(text: String) -> Result<Self, InvalidRolePrefix> {
        let is_identifier = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        // Postgres keeps names that begin with pg_ for itself.
        let is_reserved = text == "pg" || text.starts_with("pg_");
        if is_identifier && text.len() <= MAX_LEN && !is_reserved {
            Ok(Self(text))
        } else {
            Err(InvalidRolePrefix)
        }
    }
}

impl From<RolePrefix> for String {
    fn from(prefix: RolePrefix) -> Self {
        prefix.0
    }
}

impl fmt::Display for RolePrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_identifiers_that_need_no_quoting() {
        for valid in ["tempmail", "_", "a1_b", "pgs", &"a".repeat(54)] {
            assert_eq!(RolePrefix::try_from(valid.to_owned()).unwrap().to_string(), valid);
        }
        for invalid in
            ["", "1a", "Tempmail", "temp-mail", "temp mail", "täm", "a\"b", "pg", "pg_x", &"a".repeat(55)]
        {
            assert!(RolePrefix::try_from(invalid.to_owned()).is_err(), "{invalid}");
        }
    }
}
