//! Why Redis counts as away.

use std::borrow::Cow;
use std::fmt;

use redis::RedisError;

/// Why Redis counts as away, for the log: never what was sent, which may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Away(Cow<'static, str>);

impl Away {
    pub(super) const fn because(why: &'static str) -> Self {
        Self(Cow::Borrowed(why))
    }
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&RedisError> for Away {
    fn from(error: &RedisError) -> Self {
        if error.is_io_error() {
            return Self(error.to_string().into());
        }
        // Of what the server says only the first word: the rest may quote the command.
        let code = error.code().map(|code| format!(" ({code})")).unwrap_or_default();
        Self(format!("{}{code}", error.category()).into())
    }
}
