//! Why there is no answer, or not the one that was requested.

use http::StatusCode;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no connection, it was cut, or no answer came in time.
    #[error("the server can't be reached: {reason}")]
    Unreachable {
        /// What failed.
        reason: String,
        /// Whether there was a connection.
        connected: bool,
    },
    /// The server answered with an error.
    #[error("{}", refusal(*.status, .code))]
    Refused {
        /// Its status, from 400.
        status: StatusCode,
        /// Its code; empty where the answer has none, because it comes from something before the server.
        code: String,
    },
    /// The answer is not one of the token API.
    #[error("the answer is not one of tempmail's token API: {0}")]
    Unexpected(&'static str),
    /// The answer is larger than a client of this kind reads.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// Bytes that are read.
        limit: usize,
    },
    /// What was requested can't be sent.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The code of a refusal; empty for other errors.
    pub fn code(&self) -> &str {
        if let Self::Refused { code, .. } = self { code } else { "" }
    }

    /// Whether the same request may succeed in a moment. A 5xx without a code comes from something before the server, such
    /// as the 522 of a CDN; the server's own faults are final, unless it says that they are not.
    pub(crate) fn is_passing(&self) -> bool {
        let Self::Refused { status, code } = self else { return false };
        match status.as_u16() {
            408 | 429 | 502..=504 => true,
            500.. => code.is_empty(),
            _ => false,
        }
    }

    /// Whether the server can't serve anybody at the moment: it is not reached, or says so itself.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => status.is_server_error(),
            _ => false,
        }
    }
}

/// What a refusal means for the caller.
fn refusal(status: StatusCode, code: &str) -> String {
    let meaning = match code {
        "authentication_required" | "invalid_token" => "the token is not accepted",
        "session_expired" => "the token has expired",
        "account_disabled" => "the tenant is suspended",
        "not_found" => "there is nothing here that this token may read",
        "email_expired" => "the mail has expired",
        "invalid_request" => "the request is not valid",
        "token_busy" => "this token has another wait open",
        "addr_busy" => "the address has too many open waits",
        "rate_limit_exceeded" => "there were too many requests",
        "unavailable" => "the service is unavailable at the moment",
        _ => "the request was refused",
    };
    let code = if code.is_empty() { "" } else { &format!(" {code}") };
    format!("{meaning} ({}{code})", status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_a_refusal_means() {
        let refused = |status, code: &str| Error::Refused { status, code: code.to_owned() }.to_string();
        assert_eq!(
            refused(StatusCode::UNAUTHORIZED, "invalid_token"),
            "the token is not accepted (401 invalid_token)"
        );
        assert_eq!(refused(StatusCode::BAD_GATEWAY, ""), "the request was refused (502)");
    }
}
