//! The paths of MAIL and RCPT.

use tempmail_model::address::CAUGHT_PATH_MAX;

use super::reply::{self, Reply};

/// Maximum octets of a reverse-path: a local part of 64 and a domain of 255.
const REVERSE_PATH_MAX: usize = 320;

/// Splits `text` into the path at its beginning, without angle brackets, and what follows. A path
/// without brackets, which some clients send, ends at a space.
///
/// `None` if a bracket is not closed or not followed by a space.
pub(super) fn split_path(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(' ');
    let Some(inner) = text.strip_prefix('<') else {
        let (path, rest) = text.split_once(' ').unwrap_or((text, ""));
        let bare = !path.is_empty() && !path.contains(['<', '>', '"']);
        return bare.then_some((path, rest));
    };
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'>' if !quoted => {
                let rest = &inner[at + 1..];
                let separate = rest.is_empty() || rest.starts_with(' ');
                return separate.then_some((&inner[..at], rest));
            }
            _ => {}
        }
    }
    None
}

/// Parses a reverse-path: empty for the null one, else without its source route. It is only shown,
/// never sent to, so it need not be a valid address; but it is one line without brackets, of
/// bounded length. Where all mail is caught, that is the length of a recipient's, and it needs no SMTPUTF8.
///
/// # Errors
/// The reply that rejects it.
pub(super) fn parse_reverse_path(path: &str, utf8: bool, catches_all: bool) -> Result<&str, Reply> {
    if !utf8 && !catches_all && !path.is_ascii() {
        return Err(reply::SENDER_NON_ASCII);
    }
    let mailbox = match path.strip_prefix('@') {
        Some(route) => route.split_once(':').ok_or(reply::BAD_SENDER)?.1,
        None => path,
    };
    let most = if catches_all { CAUGHT_PATH_MAX } else { REVERSE_PATH_MAX };
    let well_formed = mailbox.len() <= most
        && mailbox.chars().all(|c| !c.is_control() && !matches!(c, '<' | '>'))
        && (!mailbox.contains(char::is_whitespace) || mailbox.starts_with('"'));
    if well_formed { Ok(mailbox) } else { Err(reply::BAD_SENDER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_paths_at_the_closing_bracket() {
        assert_eq!(split_path("<>"), Some(("", "")));
        assert_eq!(split_path(" <a@b> SIZE=1"), Some(("a@b", " SIZE=1")));
        assert_eq!(split_path("<\"a>b\\\"c\"@d> X"), Some(("\"a>b\\\"c\"@d", " X")));
        assert_eq!(split_path("a@b SIZE=1"), Some(("a@b", "SIZE=1")));
        for invalid in ["", "<a@b", "<a@b>X", "a@b>", "<\"a@b>", "\"a b\"@c"] {
            assert_eq!(split_path(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn accepts_any_reverse_path_that_is_one_safe_line() {
        let parse = |path, utf8| parse_reverse_path(path, utf8, false);
        assert_eq!(parse("", false), Ok(""));
        assert_eq!(parse("root", false), Ok("root"));
        assert_eq!(parse("@a,@b:c@d", false), Ok("c@d"));
        assert_eq!(parse("\"a b\"@c", false), Ok("\"a b\"@c"));
        assert_eq!(parse("ü@b", true), Ok("ü@b"));
        assert_eq!(parse("ü@b", false), Err(reply::SENDER_NON_ASCII));
        let long = format!("{}@b", "x".repeat(REVERSE_PATH_MAX));
        for invalid in ["a b@c", "a<b@c", "\"a>b\"@c", "@a", "a\u{85}b@c", &long] {
            assert_eq!(parse(invalid, true), Err(reply::BAD_SENDER), "{invalid}");
        }
        assert_eq!(parse_reverse_path(&long, false, true), Ok(long.as_str()), "where all mail is caught");
        assert_eq!(parse_reverse_path("ü@b", false, true), Ok("ü@b"));
        assert!(parse_reverse_path("a b@c", false, true).is_err());
    }
}
