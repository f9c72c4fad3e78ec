//! Where a webhook's events are sent.

use url::{Host, Url};

/// Maximum characters of a webhook's URL.
pub const URL_MAX: usize = 2048;

/// Why a text is not a valid URL of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookUrlError {
    /// More than [`URL_MAX`] characters.
    #[error("`url` must have at most 2048 characters.")]
    TooLong,
    /// Not `https://…`.
    #[error("`url` must begin with https://.")]
    NotHttps,
    /// Not a URL, or one with white space or a backslash, which parsers treat differently.
    #[error("`url` must be a valid URL.")]
    Malformed,
    /// A user name or a password.
    #[error("`url` must have no user name or password.")]
    UserInfo,
    /// An IP address, or an invalid host name.
    #[error("`url` must have a host name, not an IP address.")]
    NoHostName,
    /// A fragment, which would not be sent.
    #[error("`url` must have no fragment.")]
    Fragment,
}

/// A URL that events can be sent to: https, a host name with any port, no user info, no fragment.
/// Whether the addresses of the host are allowed is checked at each delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl(String);

impl WebhookUrl {
    /// Parses a URL, which is kept unchanged.
    ///
    /// # Errors
    /// [`WebhookUrlError`].
    pub fn parse(text: &str) -> Result<Self, WebhookUrlError> {
        if text.chars().count() > URL_MAX {
            return Err(WebhookUrlError::TooLong);
        }
        // Stricter than the parser, which would remove or change these.
        let (scheme, rest) = text.split_at_checked("https://".len()).unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("https://") {
            return Err(WebhookUrlError::NotHttps);
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(WebhookUrlError::Malformed);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(WebhookUrlError::UserInfo);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(WebhookUrlError::NoHostName);
        }
        let url = Url::parse(text).map_err(|_malformed| WebhookUrlError::Malformed)?;
        match url.host() {
            Some(Host::Domain(name)) if is_host_name(name) => {}
            _ => return Err(WebhookUrlError::NoHostName),
        }
        if url.fragment().is_some() {
            return Err(WebhookUrlError::Fragment);
        }
        Ok(Self(text.to_owned()))
    }

    /// The URL, unchanged.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether it consists of labels of letters, digits, `-` and `_` (which names of services have), within
/// the limits of DNS.
fn is_host_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_https_urls_with_a_host_name() {
        for text in [
            "https://hooks.example/",
            "https://hooks.example",
            "HTTPS://Hooks.Example:8443/a?b=c%20d",
            "https://localhost:9000/x",
            "https://receiver",
            "https://my_service.ns.svc.cluster.local/x",
            "https://bücher.example/ä",
            "https://hooks.example./",
            "https://hooks.example/a@b?c=d@e",
        ] {
            assert_eq!(WebhookUrl::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn rejects_other_urls_with_a_reason() {
        use WebhookUrlError::{Fragment, Malformed, NoHostName, NotHttps, UserInfo};
        for (text, reason) in [
            ("", NotHttps),
            ("http://hooks.example/", NotHttps),
            ("hooks.example", NotHttps),
            ("https:hooks.example", NotHttps),
            ("https:\\\\hooks.example", NotHttps),
            (" https://hooks.example/", NotHttps),
            ("ﬁttps://x", NotHttps),
            ("https://hooks.example/ ", Malformed),
            ("https://hooks\t.example/", Malformed),
            ("https://hooks.example\\@evil.example/", Malformed),
            ("https://hooks.example:99999/", Malformed),
            ("https://a%00b.example/", Malformed),
            ("https://user@hooks.example/", UserInfo),
            ("https://user:secret@hooks.example/", UserInfo),
            ("https://@hooks.example/", UserInfo),
            ("https://", NoHostName),
            ("https:///hooks.example", NoHostName),
            ("https://:443/", NoHostName),
            ("https://127.0.0.1/", NoHostName),
            ("https://2130706433/", NoHostName),
            ("https://0x7f.1/", NoHostName),
            ("https://[::1]/", NoHostName),
            ("https://./", NoHostName),
            ("https://a..b/", NoHostName),
            ("https://-a.example/", NoHostName),
            ("https://hooks.example/#top", Fragment),
            ("https://hooks.example/#", Fragment),
        ] {
            assert_eq!(WebhookUrl::parse(text), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn accepts_at_most_2048_characters() {
        let of = |length: usize| {
            let start = "https://hooks.example/";
            WebhookUrl::parse(&format!("{start}{}", "ä".repeat(length - start.len())))
        };
        assert!(of(2048).is_ok(), "characters count, not octets");
        assert_eq!(of(2049), Err(WebhookUrlError::TooLong));
    }
}
