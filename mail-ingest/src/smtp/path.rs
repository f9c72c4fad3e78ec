//! Reverse-path and forward-path of MAIL and RCPT, cut out of a command line.

use super::reply::{self, Reply};

/// Most octets of a reverse-path: a local part of 64 and a domain of 255.
const REVERSE_PATH_MAX: usize = 320;

/// Cuts the path off the front of `text`: what stands between the angle brackets, and what
/// follows. A path without brackets, which some clients send, ends at a space.
///
/// `None` where a bracket is not closed or something sticks to it.
pub fn cut(text: &str) -> Option<(&str, &str)> {
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

/// The reverse-path as text: empty for the null one, else without its source route. It is
/// shown, never sent to, so it need not be an address that exists; but it is one line without
/// brackets, of bounded length.
///
/// # Errors
/// The reply to refuse it with.
pub fn reverse(path: &str, utf8: bool) -> Result<&str, Reply> {
    if !utf8 && !path.is_ascii() {
        return Err(reply::NON_ASCII);
    }
    let mailbox = match path.strip_prefix('@') {
        Some(route) => route.split_once(':').ok_or(reply::BAD_SENDER)?.1,
        None => path,
    };
    let well_formed = mailbox.len() <= REVERSE_PATH_MAX
        && mailbox.chars().all(|c| !c.is_control() && !matches!(c, '<' | '>'))
        && (!mailbox.contains(char::is_whitespace) || mailbox.starts_with('"'));
    if well_formed { Ok(mailbox) } else { Err(reply::BAD_SENDER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_at_their_bracket() {
        assert_eq!(cut("<>"), Some(("", "")));
        assert_eq!(cut(" <a@b> SIZE=1"), Some(("a@b", " SIZE=1")));
        assert_eq!(cut("<\"a>b\\\"c\"@d> X"), Some(("\"a>b\\\"c\"@d", " X")));
        assert_eq!(cut("a@b SIZE=1"), Some(("a@b", "SIZE=1")));
        for wrong in ["", "<a@b", "<a@b>X", "a@b>", "<\"a@b>", "\"a b\"@c"] {
            assert_eq!(cut(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn reverse_paths_are_lenient_but_one_safe_line() {
        assert_eq!(reverse("", false), Ok(""));
        assert_eq!(reverse("root", false), Ok("root"));
        assert_eq!(reverse("@a,@b:c@d", false), Ok("c@d"));
        assert_eq!(reverse("\"a b\"@c", false), Ok("\"a b\"@c"));
        assert_eq!(reverse("ü@b", true), Ok("ü@b"));
        assert_eq!(reverse("ü@b", false), Err(reply::NON_ASCII));
        let long = format!("{}@b", "x".repeat(REVERSE_PATH_MAX));
        for wrong in ["a b@c", "a<b@c", "\"a>b\"@c", "@a", "a\u{85}b@c", &long] {
            assert_eq!(reverse(wrong, true), Err(reply::BAD_SENDER), "{wrong}");
        }
    }
}
