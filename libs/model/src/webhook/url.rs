//! Where a webhook's events are sent. A URL is judged by the same rules when it is created and whenever it is sent to.

use ipnet::IpNet;
use url::{Host, Url};

/// Maximum characters of a webhook's URL.
pub const URL_MAX: usize = 2048;

/// Ports of HTTPS; other services listen on other ports.
const PORTS: [u16; 2] = [443, 8443];
/// Top-level names of private networks.
const PRIVATE_SUFFIXES: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "svc"];

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
    /// A name of a private network, and the installation allows none.
    #[error(
        "`url` must have a public host name: one with a dot, and not under localhost, local, internal, home.arpa or svc."
    )]
    PrivateName,
    /// Another port than those of HTTPS, and the installation allows no private network.
    #[error("`url` must have port 443 or 8443.")]
    Port,
}

/// Which addresses the host of a URL may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// Public ones, and those of allowed networks.
    Public,
    /// Those of allowed networks only.
    AllowedNetworks,
}

/// A URL that events can be sent to: https, a host name, no user info, no fragment. It has a public name and port 443 or
/// 8443, unless the installation allows private networks: then every name and port may lead to them. Whether the addresses
/// of the host are allowed is checked at each delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    text: String,
    url: Url,
    scope: AddressScope,
}

impl WebhookUrl {
    /// Parses a URL, which is kept unchanged. `allowed_networks`: private networks that webhooks may reach.
    ///
    /// # Errors
    /// [`WebhookUrlError`]: nothing is ever sent to it.
    pub fn parse(text: &str, allowed_networks: &[IpNet]) -> Result<Self, WebhookUrlError> {
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
        let name = match url.host() {
            Some(Host::Domain(name)) if is_host_name(name) => name.trim_end_matches('.'),
            _ => return Err(WebhookUrlError::NoHostName),
        };
        if url.fragment().is_some() {
            return Err(WebhookUrlError::Fragment);
        }
        let scope = match refusal_in_public(name, &url) {
            None => AddressScope::Public,
            Some(_) if !allowed_networks.is_empty() => AddressScope::AllowedNetworks,
            Some(error) => return Err(error),
        };
        Ok(Self { text: text.to_owned(), url, scope })
    }

    /// The URL, unchanged.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL, parsed.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Which addresses its host may have.
    pub fn scope(&self) -> AddressScope {
        self.scope
    }
}

/// Why a URL leads to no public address, whatever DNS says.
fn refusal_in_public(name: &str, url: &Url) -> Option<WebhookUrlError> {
    if is_private_name(name) {
        Some(WebhookUrlError::PrivateName)
    } else if !url.port_or_known_default().is_some_and(|port| PORTS.contains(&port)) {
        Some(WebhookUrlError::Port)
    } else {
        None
    }
}

/// Whether a name is without a dot, or under a top-level name of private networks.
fn is_private_name(name: &str) -> bool {
    let is_under = |suffix: &str| {
        let rest = name.len().checked_sub(suffix.len()).map(|at| name.split_at(at));
        rest.is_some_and(|(rest, end)| {
            end.eq_ignore_ascii_case(suffix) && (rest.is_empty() || rest.ends_with('.'))
        })
    };
    !name.contains('.') || PRIVATE_SUFFIXES.iter().any(|suffix| is_under(suffix))
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

    fn parse(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        WebhookUrl::parse(text, &[])
    }

    fn parse_with_a_network(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        WebhookUrl::parse(text, &["10.0.0.0/8".parse().unwrap()])
    }

    #[test]
    fn keeps_https_urls_with_a_public_host_name() {
        for text in [
            "https://hooks.example/",
            "https://hooks.example",
            "HTTPS://Hooks.Example:8443/a?b=c%20d",
            "https://hooks.example:443/",
            "https://notlocal.example./",
            "https://bücher.example/ä",
            "https://hooks.example/a@b?c=d@e",
        ] {
            for parsed in [parse(text), parse_with_a_network(text)] {
                let parsed = parsed.unwrap();
                assert_eq!((parsed.as_str(), parsed.scope()), (text, AddressScope::Public));
            }
        }
    }

    #[test]
    fn keeps_private_names_and_other_ports_only_where_networks_are_allowed() {
        use WebhookUrlError::{Port, PrivateName};
        for (text, reason) in [
            ("https://receiver/", PrivateName),
            ("https://localhost:9000/x", PrivateName),
            ("https://a.LOCALHOST./", PrivateName),
            ("https://printer.local/", PrivateName),
            ("https://vault.internal/", PrivateName),
            ("https://router.home.arpa/", PrivateName),
            ("https://api.ns.svc:8443/", PrivateName),
            ("https://my_service.ns.svc.cluster.local/x", PrivateName),
            ("https://hooks.example:6379/", Port),
            ("https://hooks.example:80/", Port),
            ("https://hooks.example:0/", Port),
        ] {
            assert_eq!(parse(text), Err(reason), "{text}");
            let parsed = parse_with_a_network(text).unwrap();
            assert_eq!((parsed.as_str(), parsed.scope()), (text, AddressScope::AllowedNetworks));
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
            assert_eq!(parse(text), Err(reason), "{text:?}");
            assert_eq!(parse_with_a_network(text), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn accepts_at_most_2048_characters() {
        let of = |length: usize| {
            let start = "https://hooks.example/";
            parse(&format!("{start}{}", "ä".repeat(length - start.len())))
        };
        assert!(of(2048).is_ok(), "characters count, not octets");
        assert_eq!(of(2049), Err(WebhookUrlError::TooLong));
    }
}
