//! Parsing of command lines, and of the paths in MAIL and RCPT.

use memchr::memchr;
use tempmail_model::address::CAUGHT_PATH_MAX;

use super::reply::{self, Reply};

/// Maximum octets of a command line with its CRLF. RFC 5321 requires 512, and its extensions some
/// more.
pub(super) const LINE_MAX: usize = 2048;

/// The one line of the signature of the PROXY protocol, version 2, that is no command line.
const PROXY_V2_LINE: &[u8] = b"\0";

/// Maximum characters of a client's name in the trace field.
const HELLO_MAX: usize = 255;

/// A command with valid arguments, as far as they can be validated without the session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// EHLO with the client's name.
    Ehlo(&'a str),
    /// HELO with the client's name.
    Helo(&'a str),
    /// MAIL.
    Mail(MailCommand<'a>),
    /// RCPT with its forward-path.
    Rcpt(&'a str),
    /// DATA.
    Data,
    /// BDAT.
    Bdat {
        /// Octets of the chunk that follows.
        octets: u64,
        /// Whether the chunk is the last of the message.
        last: bool,
    },
    /// RSET.
    Rset,
    /// NOOP.
    Noop,
    /// QUIT.
    Quit,
    /// VRFY.
    Vrfy,
    /// HELP.
    Help,
    /// STARTTLS.
    StartTls,
    /// AUTH with its arguments.
    Auth(&'a str),
}

/// The arguments of MAIL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MailCommand<'a> {
    /// Reverse-path; empty for the null one.
    pub(super) sender: &'a str,
    /// SIZE: octets that the client declares.
    pub(super) size: Option<u64>,
    /// SMTPUTF8.
    pub(super) utf8: bool,
}

/// Whether a line is a RCPT command.
pub(super) fn is_rcpt(line: &[u8]) -> bool {
    line.get(..5).is_some_and(|verb| verb.eq_ignore_ascii_case(b"RCPT "))
}

/// Parses a command line without its CRLF. Where all mail is caught (`catches_all`), AUTH and its parameter of MAIL
/// (RFC 4954) are known, those of DSN (RFC 3461) are dropped, and a reverse-path is as long as a forward-path.
///
/// # Errors
/// The reply that rejects it; [`reply::BDAT_SYNTAX`] and [`reply::PROXY_REFUSED`] have to close the session.
pub(super) fn parse(line: &[u8], catches_all: bool) -> Result<Command<'_>, Reply> {
    if line == PROXY_V2_LINE {
        return Err(reply::PROXY_REFUSED);
    }
    let line = std::str::from_utf8(line).map_err(|_| not_utf8(line))?;
    if line.bytes().any(|b| b.is_ascii_control()) {
        return Err(reply::BAD_LINE);
    }
    let line = line.trim_end_matches(' ');
    let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
    let is = |name: &str| verb.eq_ignore_ascii_case(name);
    let without_argument = |command| if argument.is_empty() { Ok(command) } else { Err(reply::NO_ARGUMENT) };
    match verb.len() {
        4 if is("MAIL") => mail(argument, catches_all).map(Command::Mail),
        4 if is("RCPT") => rcpt(argument, catches_all).map(Command::Rcpt),
        4 if is("DATA") => without_argument(Command::Data),
        4 if is("BDAT") => bdat(argument),
        4 if is("EHLO") => hello(argument).map(Command::Ehlo),
        4 if is("HELO") => hello(argument).map(Command::Helo),
        4 if is("RSET") => without_argument(Command::Rset),
        4 if is("QUIT") => without_argument(Command::Quit),
        4 if is("NOOP") => Ok(Command::Noop),
        4 if is("HELP") => Ok(Command::Help),
        4 if is("VRFY") && argument.is_empty() => Err(reply::ARGUMENT_NEEDED),
        4 if is("VRFY") => Ok(Command::Vrfy),
        4 if is("AUTH") && catches_all => Ok(Command::Auth(argument)),
        4 if is("AUTH") || is("EXPN") || is("ETRN") || is("TURN") => Err(reply::NOT_IMPLEMENTED),
        5 if is("PROXY") => Err(reply::PROXY_REFUSED),
        8 if is("STARTTLS") => without_argument(Command::StartTls),
        _ => Err(reply::UNKNOWN_COMMAND),
    }
}

/// The reply to a line that is not UTF-8.
fn not_utf8(line: &[u8]) -> Reply {
    let has_verb = |verb: &[u8]| line.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb));
    if has_verb(b"MAIL ") || has_verb(b"RCPT ") { reply::PATH_NOT_UTF8 } else { reply::BAD_LINE }
}

/// Skips a line that is too long, including its CRLF. Returns the octets skipped, and whether the
/// CRLF was among them.
pub(super) fn skip_line(input: &[u8], previous_was_cr: &mut bool) -> (usize, bool) {
    let mut at = 0;
    while let Some(end) = memchr(b'\n', &input[at..]) {
        let after_cr =
            if end == 0 && at == 0 { *previous_was_cr } else { end > 0 && input[at + end - 1] == b'\r' };
        at += end + 1;
        if after_cr {
            return (at, true);
        }
    }
    *previous_was_cr = input.last().map_or(*previous_was_cr, |&last| last == b'\r');
    (input.len(), false)
}

/// A client's name for the trace field: at most 255 characters, with `?` for all that could end
/// its clause.
pub(super) fn sanitize_hello(name: &str) -> String {
    name.chars()
        .take(HELLO_MAX)
        .map(|c| if c.is_ascii_alphanumeric() || "-._:[]".contains(c) { c } else { '?' })
        .collect()
}

fn hello(argument: &str) -> Result<&str, Reply> {
    if argument.is_empty() { Err(reply::HELLO_SYNTAX) } else { Ok(argument) }
}

/// What follows a prefix, which is compared without regard to case.
fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

fn mail(argument: &str, catches_all: bool) -> Result<MailCommand<'_>, Reply> {
    let path = strip_prefix_ignore_case(argument, "FROM:").ok_or(reply::MAIL_SYNTAX)?;
    let (path, parameters) = split_path(path).ok_or(reply::MAIL_SYNTAX)?;
    let (mut size, mut utf8, mut body, mut auth) = (None, false, false, false);
    for parameter in parameters.split(' ').filter(|parameter| !parameter.is_empty()) {
        let (keyword, value) = match parameter.split_once('=') {
            Some((keyword, value)) => (keyword, Some(value)),
            None => (parameter, None),
        };
        if keyword.eq_ignore_ascii_case("SIZE") {
            let value = value.and_then(parse_number).ok_or(reply::BAD_PARAMETER)?;
            if size.replace(value).is_some() {
                return Err(reply::BAD_PARAMETER);
            }
        } else if keyword.eq_ignore_ascii_case("BODY") {
            let value = value.filter(|_| !body).ok_or(reply::BAD_PARAMETER)?;
            if value.eq_ignore_ascii_case("BINARYMIME") {
                return Err(reply::UNKNOWN_PARAMETER);
            }
            if !value.eq_ignore_ascii_case("7BIT") && !value.eq_ignore_ascii_case("8BITMIME") {
                return Err(reply::BAD_PARAMETER);
            }
            body = true;
        } else if keyword.eq_ignore_ascii_case("SMTPUTF8") {
            if value.is_some() || utf8 {
                return Err(reply::BAD_PARAMETER);
            }
            utf8 = true;
        } else if keyword.eq_ignore_ascii_case("AUTH") && catches_all {
            // Who submitted the mail, which is not of interest.
            if value.is_none() || auth {
                return Err(reply::BAD_PARAMETER);
            }
            auth = true;
        } else if catches_all && is_dsn_parameter(keyword, &["RET", "ENVID"]) {
            // No notification is sent, since all mail is delivered.
        } else {
            return Err(reply::UNKNOWN_PARAMETER);
        }
    }
    Ok(MailCommand { sender: parse_reverse_path(path, utf8, catches_all)?, size, utf8 })
}

fn rcpt(argument: &str, catches_all: bool) -> Result<&str, Reply> {
    let path = strip_prefix_ignore_case(argument, "TO:").ok_or(reply::RCPT_SYNTAX)?;
    let (path, parameters) = split_path(path).ok_or(reply::RCPT_SYNTAX)?;
    let mut keywords = parameters
        .split(' ')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| parameter.split_once('=').map_or(parameter, |(keyword, _)| keyword));
    if keywords.all(|keyword| catches_all && is_dsn_parameter(keyword, &["NOTIFY", "ORCPT"])) {
        Ok(path)
    } else {
        Err(reply::UNKNOWN_PARAMETER)
    }
}

fn is_dsn_parameter(keyword: &str, known: &[&str]) -> bool {
    known.iter().any(|known| keyword.eq_ignore_ascii_case(known))
}

fn bdat(argument: &str) -> Result<Command<'_>, Reply> {
    let (octets, last) = match argument.split_once(' ') {
        Some((octets, end)) if end.trim_matches(' ').eq_ignore_ascii_case("LAST") => (octets, true),
        Some(_) => return Err(reply::BDAT_SYNTAX),
        None => (argument, false),
    };
    let octets = parse_number(octets).ok_or(reply::BDAT_SYNTAX)?;
    Ok(Command::Bdat { octets, last })
}

/// Parses at most 20 digits (RFC 1870) and nothing else; `u64::from_str` would accept a plus sign.
/// A number that does not fit exceeds any limit.
fn parse_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

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
    fn parses_parameters_of_mail() {
        let mail_where = |catches_all: bool, line: &'static str| match parse(line.as_bytes(), catches_all) {
            Ok(Command::Mail(mail)) => Ok(mail),
            Ok(other) => panic!("{other:?}"),
            Err(reply) => Err(reply),
        };
        let mail = |line| mail_where(false, line);
        assert_eq!(
            mail("mail from:<a@b> size=10 body=8bitmime smtputf8"),
            Ok(MailCommand { sender: "a@b", size: Some(10), utf8: true })
        );
        assert_eq!(
            mail_where(true, "MAIL FROM: <> AUTH=<> "),
            Ok(MailCommand { sender: "", size: None, utf8: false })
        );
        assert_eq!(mail_where(true, "MAIL FROM:<a@b> AUTH"), Err(reply::BAD_PARAMETER));
        assert!(mail_where(true, "MAIL FROM:<a@b> RET=HDRS ENVID=1").is_ok());
        assert!(mail_where(true, "MAIL FROM:<a@b> NOTIFY=NEVER").is_err());
        assert_eq!(
            mail("MAIL FROM:a@b SIZE=0"),
            Ok(MailCommand { sender: "a@b", size: Some(0), utf8: false })
        );
        for (line, reply) in [
            ("MAIL", reply::MAIL_SYNTAX),
            ("MAIL FROM", reply::MAIL_SYNTAX),
            ("MAIL FROM:", reply::MAIL_SYNTAX),
            ("MAIL TO:<a@b>", reply::MAIL_SYNTAX),
            ("MAIL FROM:<a@b>SIZE=1", reply::MAIL_SYNTAX),
            ("MAIL FROM:<a@b> SIZE", reply::BAD_PARAMETER),
            ("MAIL FROM:<a@b> SIZE=+1", reply::BAD_PARAMETER),
            ("MAIL FROM:<a@b> SIZE=1 SIZE=1", reply::BAD_PARAMETER),
            ("MAIL FROM:<a@b> BODY=8BIT", reply::BAD_PARAMETER),
            ("MAIL FROM:<a@b> BODY=BINARYMIME", reply::UNKNOWN_PARAMETER),
            ("MAIL FROM:<a@b> SMTPUTF8=1", reply::BAD_PARAMETER),
            ("MAIL FROM:<a@b> AUTH", reply::UNKNOWN_PARAMETER),
            ("MAIL FROM:<a@b> AUTH=<>", reply::UNKNOWN_PARAMETER),
            ("MAIL FROM:<a@b> RET=HDRS", reply::UNKNOWN_PARAMETER),
            ("MAIL FROM:<\u{fc}@b>", reply::SENDER_NON_ASCII),
            ("MAIL FROM:<a b@c>", reply::BAD_SENDER),
        ] {
            assert_eq!(mail(line), Err(reply), "{line}");
        }
    }

    #[test]
    fn parses_commands() {
        let rcpt = parse(b"RCPT TO:<a@b> NOTIFY=NEVER ORCPT=rfc822;a@b", true);
        assert_eq!(rcpt, Ok(Command::Rcpt("a@b")), "where all mail is caught");
        assert_eq!(parse(b"RCPT TO:<a@b> RET=HDRS", true), Err(reply::UNKNOWN_PARAMETER));
        let parse = |line| parse(line, false);
        assert_eq!(parse(b"ehlo [192.0.2.1]"), Ok(Command::Ehlo("[192.0.2.1]")));
        assert_eq!(parse(b"RCPT to:<a@b> "), Ok(Command::Rcpt("a@b")));
        assert_eq!(parse(b"bdat 12 last"), Ok(Command::Bdat { octets: 12, last: true }));
        assert_eq!(parse(b"BDAT 99999999999999999999"), Ok(Command::Bdat { octets: u64::MAX, last: false }));
        for (line, reply) in [
            (&b""[..], reply::UNKNOWN_COMMAND),
            (b" NOOP", reply::UNKNOWN_COMMAND),
            (b"NO\xc3\xa9P", reply::UNKNOWN_COMMAND),
            (b"NOOP \xff", reply::BAD_LINE),
            (b"MAIL FROM:<\xfc@b> SMTPUTF8", reply::PATH_NOT_UTF8),
            (b"rcpt to:<\xfc@b>", reply::PATH_NOT_UTF8),
            (b"MAIL FROM:<a@b>\0", reply::BAD_LINE),
            (b"NOOP \0", reply::BAD_LINE),
            (b"EHLO", reply::HELLO_SYNTAX),
            (b"DATA now", reply::NO_ARGUMENT),
            (b"RCPT TO:<a@b> NOTIFY=NEVER", reply::UNKNOWN_PARAMETER),
            (b"RCPT TO:", reply::RCPT_SYNTAX),
            (b"BDAT", reply::BDAT_SYNTAX),
            (b"BDAT -1", reply::BDAT_SYNTAX),
            (b"BDAT 1 FIRST", reply::BDAT_SYNTAX),
            (b"VRFY", reply::ARGUMENT_NEEDED),
            (b"EXPN list", reply::NOT_IMPLEMENTED),
            (b"AUTH PLAIN", reply::NOT_IMPLEMENTED),
        ] {
            assert_eq!(parse(line), Err(reply), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn sanitizes_the_name_of_a_client() {
        assert_eq!(sanitize_hello("a.b-c_d:[1]"), "a.b-c_d:[1]");
        assert_eq!(sanitize_hello("a (b)\r\nc;\u{fc}"), "a??b???c??");
        assert_eq!(sanitize_hello(&"x".repeat(999)).len(), HELLO_MAX);
    }

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
