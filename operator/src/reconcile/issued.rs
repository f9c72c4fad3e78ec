//! Credentials between their row and their Secret.

use std::fmt;

/// The credential that the current reconciliation issued, if any. Outside of its Secret a credential exists
/// only here, and only until the reconciliation ends: the row holds a hash.
#[derive(Default)]
pub(crate) struct Issued(Option<Credential>);

struct Credential {
    value: String,
    /// What the row stores of the value.
    hash: Vec<u8>,
    /// Whether a credential was active that this one replaces.
    replaces: bool,
}

impl Issued {
    /// Keeps a credential whose `hash` is in the row.
    pub(crate) fn set(&mut self, value: &str, hash: &[u8], replaces: bool) {
        self.0 = Some(Credential { value: value.to_owned(), hash: hash.to_owned(), replaces });
    }

    /// The credential with the hash that the row stores, if this reconciliation issued it.
    pub(crate) fn value(&self, hash: &[u8]) -> Option<&str> {
        self.0.as_ref().filter(|credential| credential.hash == hash).map(|credential| &*credential.value)
    }

    /// Whether the credential replaces one that was active.
    pub(crate) fn replaces(&self) -> bool {
        self.0.as_ref().is_some_and(|credential| credential.replaces)
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issued").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_value_only_for_the_hash_of_the_row() {
        let mut issued = Issued::default();
        assert_eq!(issued.value(b"hash"), None);
        issued.set("value", b"hash", true);
        assert_eq!(issued.value(b"hash"), Some("value"));
        assert_eq!(issued.value(b"another"), None);
        assert!(issued.replaces());
        assert!(!format!("{issued:?}").contains("value"));
    }
}
