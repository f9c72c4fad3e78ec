//! AUTH (RFC 4954) of a sink, with the mechanisms PLAIN (RFC 4616) and LOGIN. Any user name and password is accepted. They
//! are parsed, so that a client whose messages are wrong finds out, and dropped: not compared, stored or logged.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::reply::{self, Reply};

/// What the client's next line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The message of PLAIN: authorization identity, user name and password.
    PlainMessage,
    /// The user name of LOGIN.
    UserName,
    /// The password of LOGIN.
    Password,
}

impl Awaited {
    /// The reply that asks for it.
    pub(super) fn challenge(self) -> Reply {
        match self {
            Self::PlainMessage => reply::AUTH_RESPONSE,
            Self::UserName => reply::AUTH_USER_NAME,
            Self::Password => reply::AUTH_PASSWORD,
        }
    }
}

/// Starts an exchange with the arguments of AUTH. Returns what is awaited next; `None` if it has succeeded.
///
/// # Errors
/// The reply that rejects it.
pub(super) fn start(arguments: &str) -> Result<Option<Awaited>, Reply> {
    let mut words = arguments.split(' ').filter(|word| !word.is_empty());
    let mechanism = words.next().ok_or(reply::AUTH_SYNTAX)?;
    let initial = words.next();
    if words.next().is_some() {
        return Err(reply::AUTH_SYNTAX);
    }
    let first = if mechanism.eq_ignore_ascii_case("PLAIN") {
        Awaited::PlainMessage
    } else if mechanism.eq_ignore_ascii_case("LOGIN") {
        Awaited::UserName
    } else {
        return Err(reply::AUTH_MECHANISM);
    };
    match initial {
        None => Ok(Some(first)),
        // An empty initial response (RFC 4954 4).
        Some("=") => respond(first, b""),
        Some(initial) => respond(first, initial.as_bytes()),
    }
}

/// Continues an exchange with a line of the client. Returns what is awaited next; `None` if it has succeeded.
///
/// # Errors
/// The reply that ends it.
pub(super) fn respond(awaited: Awaited, line: &[u8]) -> Result<Option<Awaited>, Reply> {
    if line == b"*" {
        return Err(reply::AUTH_CANCELLED);
    }
    let message = BASE64_STANDARD.decode(line).map_err(|_| reply::AUTH_INVALID)?;
    match awaited {
        Awaited::PlainMessage if message.iter().filter(|&&octet| octet == 0).count() != 2 => {
            Err(reply::AUTH_INVALID)
        }
        Awaited::PlainMessage | Awaited::Password => Ok(None),
        Awaited::UserName => Ok(Some(Awaited::Password)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_any_password_of_both_mechanisms() {
        assert_eq!(start("PLAIN AGFkYQBzZWNyZXQ="), Ok(None));
        assert_eq!(start("plain"), Ok(Some(Awaited::PlainMessage)));
        assert_eq!(respond(Awaited::PlainMessage, b"AGFkYQBzZWNyZXQ="), Ok(None));
        assert_eq!(start("LOGIN"), Ok(Some(Awaited::UserName)));
        assert_eq!(start("LOGIN YWRh"), Ok(Some(Awaited::Password)));
        assert_eq!(respond(Awaited::UserName, b"YWRh"), Ok(Some(Awaited::Password)));
        assert_eq!(respond(Awaited::Password, b""), Ok(None));
    }

    #[test]
    fn rejects_what_is_no_message_of_the_mechanism() {
        for (arguments, reply) in [
            ("", reply::AUTH_SYNTAX),
            ("PLAIN a b", reply::AUTH_SYNTAX),
            ("CRAM-MD5", reply::AUTH_MECHANISM),
            ("PLAIN =", reply::AUTH_INVALID),
            ("PLAIN YWRh", reply::AUTH_INVALID),
            ("LOGIN %", reply::AUTH_INVALID),
        ] {
            assert_eq!(start(arguments), Err(reply), "{arguments}");
        }
        assert_eq!(respond(Awaited::Password, b"*"), Err(reply::AUTH_CANCELLED));
    }
}
