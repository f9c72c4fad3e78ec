//! The two address types. A [`RecipientAddress`] is any mailbox of RFC 5321 and 6531 in its normal
//! form, as SMTP and paths of `/v1` have it; where all mail is caught, it is any path at all ([`AddressSyntax`]).
//! A [`MailboxAddress`] is one of the few that can be created, which are not easily confused.

mod reserved;

use std::borrow::Cow;
use std::fmt;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;
use uuid::Uuid;

pub use self::reserved::{Reservation, ReservedLocalParts};

/// Maximum octets of a local part (RFC 5321 4.5.3.1.1).
pub const LOCAL_PART_MAX: usize = 64;

/// Maximum octets of a path where all mail is caught. RFC 5321 4.5.3.1 asks for no limit that is not needed.
pub const CAUGHT_PATH_MAX: usize = 1024;

/// The pattern of a mailbox's local part, published in `/v1/config`.
pub const MAILBOX_LOCAL_PART_PATTERN: &str = "^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$";

/// Why a text is not an address that can receive mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not of the form `local-part@domain` (RFC 5321 4.1.2), or too long.
    #[error("the address must have the form local-part@domain")]
    Malformed,
    /// The local part needs quotes, which are not supported.
    #[error("local parts that need quotes are not supported")]
    NeedsQuotes,
    /// The domain is an address literal such as `[192.0.2.1]`.
    #[error("address literals are not supported")]
    AddressLiteral,
}

/// Which addresses there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSyntax {
    /// Those of a host of mailboxes: what RFC 5321 and RFC 6531 allow, without quoted local parts and address literals.
    Hosted,
    /// Those of a sink: each path that can be parsed, at most [`CAUGHT_PATH_MAX`] octets. Local parts may be quoted or long,
    /// have empty atoms and characters that RFC 5321 quotes; domains may be literals, and no host names.
    Caught,
}

impl AddressSyntax {
    /// Parses an address of an SMTP path (without angle brackets) or a URL path.
    ///
    /// An address that both syntaxes allow has the same normal form in both.
    ///
    /// # Errors
    /// [`AddressError`] for all that the syntax forbids.
    pub fn parse(self, input: &str) -> Result<RecipientAddress, AddressError> {
        let hosted = RecipientAddress::parse(input);
        match self {
            Self::Hosted => hosted,
            Self::Caught => hosted.or_else(|_| RecipientAddress::parse_caught(input)),
        }
    }
}

/// An address in normal form: without unnecessary quotes, source route and trailing dot; the local
/// part in NFC with ASCII in lower case; the domain as A-labels in lower case.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RecipientAddress {
    text: String,
    at: usize,
    non_ascii: bool,
}

impl RecipientAddress {
    /// Parses an address of an SMTP path (without angle brackets) or a URL path.
    ///
    /// # Errors
    /// [`AddressError`] for all that RFC 5321 forbids.
    pub fn parse(input: &str) -> Result<Self, AddressError> {
        let mailbox = drop_source_route(input)?;
        let (local, domain) = split(mailbox)?;
        if domain.starts_with('[') {
            return Err(AddressError::AddressLiteral);
        }
        let non_ascii = !local.is_ascii();
        let mut text = lower_case_nfc(&local);
        if text.len() > LOCAL_PART_MAX || !is_dot_string(&text) {
            return Err(AddressError::Malformed);
        }
        let at = text.len();
        text.push('@');
        text.push_str(&normalize_domain(domain)?);
        Ok(Self { text, at, non_ascii })
    }

    /// Parses a path that RFC 5321 forbids: an unquoted local part goes up to the last `@`, a quoted one keeps its quotes if
    /// it needs them.
    fn parse_caught(input: &str) -> Result<Self, AddressError> {
        let mailbox = match input.strip_prefix('@').and_then(|route| route.split_once(':')) {
            Some((_, mailbox)) => mailbox,
            None => input,
        };
        let is_quoted = mailbox.starts_with('"');
        let (local, domain) = if is_quoted {
            split_quoted(mailbox)?
        } else {
            let (local, domain) = mailbox.rsplit_once('@').ok_or(AddressError::Malformed)?;
            (local.to_owned(), domain)
        };
        let non_ascii = !local.is_ascii();
        let mut text = lower_case_nfc(&local);
        if is_quoted && !is_dot_string(&text) {
            text = quote(&text);
        } else if text.is_empty()
            || text.starts_with('@')
            || text.contains(|c: char| is_separator(c) || c == '"')
        {
            return Err(AddressError::Malformed);
        }
        let at = text.len();
        text.push('@');
        text.push_str(&normalize_domain(domain).or_else(|_| normalize_caught_domain(domain))?);
        let fits = text.len() <= CAUGHT_PATH_MAX;
        fits.then_some(Self { text, at, non_ascii }).ok_or(AddressError::Malformed)
    }

    /// `local-part@domain` in normal form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The local part: at most 64 octets, in a sink [`CAUGHT_PATH_MAX`].
    pub fn local_part(&self) -> &str {
        &self.text[..self.at]
    }

    /// The local part up to the first `+`: that of the mailbox which receives tagged mail.
    pub fn base_local_part(&self) -> &str {
        let local = self.local_part();
        local.split_once('+').map_or(local, |(base, _)| base)
    }

    /// The domain as A-labels; in a sink it may be an address literal, or no host name.
    pub fn domain(&self) -> &str {
        &self.text[self.at + 1..]
    }

    /// Whether the local part was given with characters outside ASCII. System domains reject it, so
    /// that no address looks like a reserved one.
    pub fn has_non_ascii_local_part(&self) -> bool {
        self.non_ascii
    }

    /// The inbox of this exact address if it has no mailbox: the first 16 octets of its SHA-256.
    pub fn inbox_key(&self) -> Uuid {
        let digest = Sha256::digest(self.text.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Uuid::from_bytes(key)
    }
}

impl fmt::Debug for RecipientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecipientAddress(…@{})", self.domain())
    }
}

/// An address of a mailbox: 1 to 64 of `a-z 0-9 . _ -`, first and last alphanumeric, no `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MailboxAddress(RecipientAddress);

impl MailboxAddress {
    /// Parses the address of a mailbox to create or to sign in to.
    ///
    /// # Errors
    /// [`AddressError`], also for addresses that can receive mail but can't be created.
    pub fn parse(input: &str) -> Result<Self, AddressError> {
        let address = RecipientAddress::parse(input)?;
        let local = address.local_part();
        let alphanumeric = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let allowed = !address.non_ascii
            && local.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && alphanumeric(local.bytes().next())
            && alphanumeric(local.bytes().last());
        if allowed { Ok(Self(address)) } else { Err(AddressError::Malformed) }
    }

    /// `local-part@domain` in normal form.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The local part.
    pub fn local_part(&self) -> &str {
        self.0.local_part()
    }

    /// The domain as A-labels.
    pub fn domain(&self) -> &str {
        self.0.domain()
    }
}

/// A domain name as A-labels in lower case, without a trailing dot.
///
/// # Errors
/// [`AddressError::Malformed`] unless it is a host name (RFC 1123, RFC 5891) of at most 253 octets.
pub fn normalize_domain(domain: &str) -> Result<String, AddressError> {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let ascii = Uts46::new()
        .to_ascii(domain.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify)
        .map_err(|_| AddressError::Malformed)?;
    Ok(ascii.into_owned())
}

/// A domain that is no host name in lower case, without a trailing dot: as A-labels where that is possible.
fn normalize_caught_domain(domain: &str) -> Result<String, AddressError> {
    let labels =
        Uts46::new().to_ascii(domain.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore);
    let mut text = labels.map_or_else(|_| lower_case_nfc(domain), Cow::into_owned);
    text.truncate(text.trim_end_matches('.').len());
    // Judged last: UTS 46 maps other characters to separators, such as U+0384 to a space and an accent.
    if text.is_empty() || text.contains(|c: char| is_separator(c) || c == '@') {
        return Err(AddressError::Malformed);
    }
    Ok(text)
}

/// The text in NFC with ASCII in lower case. A lower-case letter composes with marks that its capital does not.
fn lower_case_nfc(text: &str) -> String {
    text.nfc().map(|c| c.to_ascii_lowercase()).nfc().collect()
}

/// Whether an unquoted part of a path ends at the character.
fn is_separator(c: char) -> bool {
    c.is_control() || c.is_whitespace() || matches!(c, '<' | '>')
}

/// The Quoted-string (RFC 5321 4.1.2) of a local part.
fn quote(local: &str) -> String {
    format!("\"{}\"", local.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Removes a source route, which is to be ignored (RFC 5321 appendix C): `@a,@b:user@c` is `user@c`.
fn drop_source_route(path: &str) -> Result<&str, AddressError> {
    if !path.starts_with('@') {
        return Ok(path);
    }
    let (route, mailbox) = path.split_once(':').ok_or(AddressError::Malformed)?;
    let well_formed = route
        .split(',')
        .all(|hop| hop.strip_prefix('@').is_some_and(|domain| normalize_domain(domain).is_ok()));
    if well_formed { Ok(mailbox) } else { Err(AddressError::Malformed) }
}

/// Splits into local part, without quotes, and domain.
fn split(mailbox: &str) -> Result<(String, &str), AddressError> {
    if !mailbox.starts_with('"') {
        let (local, domain) = mailbox.split_once('@').ok_or(AddressError::Malformed)?;
        return Ok((local.to_owned(), domain));
    }
    let (local, domain) = split_quoted(mailbox)?;
    if is_dot_string(&local) { Ok((local, domain)) } else { Err(AddressError::NeedsQuotes) }
}

/// Splits into the content of a Quoted-string, and domain.
fn split_quoted(mailbox: &str) -> Result<(String, &str), AddressError> {
    let quoted = mailbox.strip_prefix('"').ok_or(AddressError::Malformed)?;
    let mut local = String::new();
    let mut characters = quoted.char_indices();
    while let Some((i, c)) = characters.next() {
        match c {
            '"' => {
                let domain = quoted[i + 1..].strip_prefix('@').ok_or(AddressError::Malformed)?;
                return Ok((local, domain));
            }
            '\\' => match characters.next() {
                Some((_, c @ ' '..='~')) => local.push(c),
                _ => return Err(AddressError::Malformed),
            },
            c if c.is_control() => return Err(AddressError::Malformed),
            c => local.push(c),
        }
    }
    Err(AddressError::Malformed)
}

/// Whether it is a Dot-string (RFC 5321 4.1.2, with the UTF-8 of RFC 6531 3.3).
fn is_dot_string(local: &str) -> bool {
    let atext = |c: char| {
        c.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(c)
            || (!c.is_ascii() && !c.is_control() && !c.is_whitespace())
    };
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(atext))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(input: &str) -> Result<String, AddressError> {
        RecipientAddress::parse(input).map(|address| address.as_str().to_owned())
    }

    #[test]
    fn normalizes_spellings_of_one_address() {
        for spelling in [
            "User.Name+tag@Inbox.Example",
            "user.name+tag@inbox.example.",
            "\"user.name+tag\"@inbox.example",
            "\"user\\.name+tag\"@inbox.example",
            "@relay.example,@other.example:user.name+tag@inbox.example",
        ] {
            assert_eq!(normal(spelling), Ok("user.name+tag@inbox.example".into()), "{spelling}");
        }
    }

    #[test]
    fn rejects_invalid_addresses() {
        let long = format!("{}@a.example", "x".repeat(65));
        let long_label = format!("a@{}.example", "x".repeat(64));
        for wrong in [
            "",
            "@",
            "a",
            "a@",
            "@a.example",
            "a@@b.example",
            "a b@c.example",
            ".a@b.example",
            "a.@b.example",
            "a..b@c.example",
            "a@b..example",
            "a@-b.example",
            "a@b_c.example",
            "a\0@b.example",
            "a@b\0.example",
            "\"a@b.example",
            "\"a\"b@c.example",
            "a@b.example..",
            "<a@b.example>",
            "@r.example a@b.example",
            &long,
            &long_label,
        ] {
            assert_eq!(normal(wrong), Err(AddressError::Malformed), "{wrong}");
        }
        assert_eq!(normal("\"a b\"@c.example"), Err(AddressError::NeedsQuotes));
        assert_eq!(normal("\"a@b\"@c.example"), Err(AddressError::NeedsQuotes));
        assert_eq!(normal("a@[127.0.0.1]"), Err(AddressError::AddressLiteral));
    }

    #[test]
    fn a_sink_catches_each_path_that_can_be_parsed() {
        let caught =
            |input: &str| AddressSyntax::Caught.parse(input).map(|address| address.as_str().to_owned());
        let long = format!("reply+{}@replies.example", "a1b2c3d4".repeat(16));
        for (path, expected) in [
            ("taro..yamada@carrier.example", "taro..yamada@carrier.example"),
            ("Hanako.@Carrier.Example.", "hanako.@carrier.example"),
            (".x@b.example", ".x@b.example"),
            ("dev@My_App.local", "dev@my_app.local"),
            ("dev@-b-.example", "dev@-b-.example"),
            ("a@b..example", "a@b..example"),
            ("a@[127.0.0.1]", "a@[127.0.0.1]"),
            ("a@[IPv6:2001:DB8::1]", "a@[ipv6:2001:db8::1]"),
            ("\"Ada L.\"@b.example", "\"ada l.\"@b.example"),
            ("\"a@b\"@c.example", "\"a@b\"@c.example"),
            ("\"a\\b\"@c.example", "ab@c.example"),
            ("\"a\\\"b\\\\\"@c.example", "\"a\\\"b\\\\\"@c.example"),
            ("a@b@c.example", "a@b@c.example"),
            ("a(b)@c.example", "a(b)@c.example"),
            ("@relay_1,@relay:a..b@c.example", "a..b@c.example"),
            ("User+tag@Inbox.Example", "user+tag@inbox.example"),
            (&long, &long),
        ] {
            assert_eq!(caught(path).as_deref(), Ok(expected), "{path}");
            assert_eq!(caught(expected).as_deref(), Ok(expected), "the normal form of {path}");
        }
        let too_long = format!("{}@b.example", "x".repeat(CAUGHT_PATH_MAX));
        for wrong in [
            "",
            "a",
            "@b.example",
            "a@",
            "a b@c.example",
            "\"a@b",
            "\"a\"b@c.example",
            "a@b c",
            "a\0@b",
            &too_long,
        ] {
            assert_eq!(caught(wrong), Err(AddressError::Malformed), "{wrong}");
        }
        assert_eq!(AddressSyntax::Hosted.parse("a..b@c.example"), Err(AddressError::Malformed));
    }

    #[test]
    fn converts_domains_to_a_labels() {
        assert_eq!(normal("a@Bücher.example"), Ok("a@xn--bcher-kva.example".into()));
        assert_eq!(normal("a@XN--BCHER-KVA.example"), Ok("a@xn--bcher-kva.example".into()));
        // The Kelvin sign is a letter K in disguise.
        assert_eq!(normal("a@\u{212a}.example"), Ok("a@k.example".into()));
    }

    #[test]
    fn detects_a_local_part_outside_ascii_whose_normal_form_is_ascii() {
        let kelvin = RecipientAddress::parse("\u{212a}im@b.example").unwrap();
        assert_eq!(kelvin.as_str(), "kim@b.example");
        assert!(kelvin.has_non_ascii_local_part());
        let decomposed = RecipientAddress::parse("e\u{301}@b.example").unwrap();
        assert_eq!(decomposed.local_part(), "\u{e9}");
    }

    #[test]
    fn accepts_few_addresses_of_mailboxes() {
        for good in ["a@b.example", "A.b_c-9@b.example"] {
            assert!(MailboxAddress::parse(good).is_ok(), "{good}");
        }
        for wrong in ["a+b@c.example", "_a@b.example", "a-@b.example", "a'b@c.example", "\u{212a}@b.example"]
        {
            assert!(MailboxAddress::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn normalizes_to_the_same_address_again(
            input in prop_oneof![
                "\\PC{0,40}@\\PC{0,40}",
                "[@:.,\"\\\\<;Tt1 \\[\u{308}\u{338}\u{37e}\u{384}\u{212a}\u{2000}\u{3002}\u{ff20}-]{0,12}@[@.\"Tt1 \\[\u{308}\u{384}\u{3002}\u{ff20}-]{0,6}",
            ],
        ) {
            if let Ok(address) = RecipientAddress::parse(&input) {
                let again = RecipientAddress::parse(address.as_str()).unwrap();
                prop_assert_eq!(again.as_str(), address.as_str());
            }
            if let Ok(address) = AddressSyntax::Caught.parse(&input) {
                let again = AddressSyntax::Caught.parse(address.as_str()).unwrap();
                prop_assert_eq!(again.as_str(), address.as_str());
            }
        }

        #[test]
        fn never_panics(input in "\\PC*") {
            let _ = AddressSyntax::Caught.parse(&input);
            let _ = MailboxAddress::parse(&input);
        }
    }
}
