//! Codes and links that are safe to hand on: whoever sends a mail chooses them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use url::{Host, Url};

use crate::answer::ActionLink;

/// Characters of a code.
const CODE_LENGTH: std::ops::RangeInclusive<usize> = 4..=12;
/// Characters of a link.
const LINK_MAX: usize = 2_048;

/// Whether a code is 4 to 12 of `A-Z a-z 0-9 -`: it is an argument of programs and part of what language models read.
pub fn is_safe_code(code: &str) -> bool {
    CODE_LENGTH.contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A link that is absolute, http or https, has at most 2,048 ASCII characters and no user info.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SafeLink {
    /// Its URL, as sent.
    pub url: String,
    /// What it does, as `confirm`.
    pub kind: LinkKind,
    /// Where it leads: the host of the URL.
    pub host: String,
    /// Whether it leads to the sender's domain.
    pub host_matches_from: bool,
    /// From 0 to 1.
    pub confidence: f64,
}

/// The link as it may be handed on; `None` where it may not.
pub fn safe_link(link: &ActionLink) -> Option<SafeLink> {
    let is_printable = link.url.bytes().all(|byte| byte.is_ascii_graphic());
    if link.url.len() > LINK_MAX || !is_printable {
        return None;
    }
    let (scheme, rest) = link.url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // The parser repairs much: what it makes of an authority of these characters is what a reader sees.
    let is_plain = authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !is_http || authority.is_empty() || !is_plain {
        return None;
    }
    let url = Url::parse(&link.url).ok()?;
    Some(SafeLink {
        host: url.host_str()?.to_owned(),
        url: link.url.clone(),
        kind: link.kind.parse().ok()?,
        host_matches_from: link.host_matches_from,
        confidence: link.confidence,
    })
}

/// What a link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Confirms an address or a sign-up.
    Confirm,
    /// Sets another password.
    ResetPassword,
    /// Signs in.
    SignIn,
    /// Accepts an invitation.
    AcceptInvitation,
    /// Unlocks an account.
    Unlock,
    /// Confirms an unsubscription.
    ConfirmUnsubscribe,
    /// Secures an account after an alert.
    SecureAccount,
}

impl LinkKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Confirm,
        Self::ResetPassword,
        Self::SignIn,
        Self::AcceptInvitation,
        Self::Unlock,
        Self::ConfirmUnsubscribe,
        Self::SecureAccount,
    ];

    /// Its name, as `reset_password`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::ResetPassword => "reset_password",
            Self::SignIn => "sign_in",
            Self::AcceptInvitation => "accept_invitation",
            Self::Unlock => "unlock",
            Self::ConfirmUnsubscribe => "confirm_unsubscribe",
            Self::SecureAccount => "secure_account",
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name of no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a kind is confirm, reset_password, sign_in, accept_invitation, unlock, confirm_unsubscribe or secure_account"
)]
pub struct UnknownKind;

impl FromStr for LinkKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownKind)
    }
}

/// Which links are meant.
#[derive(Debug, Clone, Default)]
pub struct LinkFilter {
    /// Links of this kind; of any where it is `None`.
    pub kind: Option<LinkKind>,
    /// Links to these hosts, as the parser of URLs writes them; to any where it is empty.
    hosts: Vec<String>,
}

impl LinkFilter {
    /// Links of a kind, to any of these hosts.
    ///
    /// # Errors
    /// The text that is no host.
    pub fn new(kind: Option<LinkKind>, hosts: &[String]) -> Result<Self, String> {
        let parse =
            |host: &String| Host::parse(host).map(|host| host.to_string()).map_err(|_malformed| host.clone());
        Ok(Self { kind, hosts: hosts.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// The links of this kind that are safe to hand on.
    pub(crate) fn of_kind(&self, links: &[ActionLink]) -> Vec<SafeLink> {
        let safe = links.iter().filter_map(safe_link);
        safe.filter(|link| self.kind.is_none_or(|kind| link.kind == kind)).collect()
    }

    /// Whether a link leads to one of the hosts.
    pub(crate) fn allows(&self, link: &SafeLink) -> bool {
        self.hosts.is_empty() || self.hosts.contains(&link.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> ActionLink {
        ActionLink {
            url: url.to_owned(),
            kind: "confirm".to_owned(),
            text: String::new(),
            host: "claimed.example".to_owned(),
            host_matches_from: true,
            confidence: 1.0,
            source: String::new(),
            reason: String::new(),
        }
    }

    #[test]
    fn codes_are_4_to_12_letters_digits_and_hyphens() {
        for safe in ["1234", "G-482913", "abcdEFGH1234"] {
            assert!(is_safe_code(safe), "{safe}");
        }
        for unsafe_code in ["", "123", "1234567890123", "12 34", "１２３４", "1234\n", "$(id)", "ignore all"]
        {
            assert!(!is_safe_code(unsafe_code), "{unsafe_code}");
        }
    }

    #[test]
    fn links_are_absolute_short_ascii_and_without_user_info() {
        let safe = safe_link(&link("https://Shop.example:8443/v?t=1#a")).unwrap();
        assert_eq!(
            (safe.host.as_str(), safe.url.as_str()),
            ("shop.example", "https://Shop.example:8443/v?t=1#a")
        );
        let long = format!("https://a.example/{}", "a".repeat(2_031));
        for refused in [
            "/v?t=1",
            "//a.example/",
            "https:a.example",
            "https:///a.example/",
            "javascript:alert(1)",
            "mailto:a@a.example",
            "https://bank.example@evil.example/",
            "https://:p@evil.example/",
            "https://evil.example\\@bank.example/",
            "https://bücher.example/",
            "https://a.example/ ignore all",
            "https://a.example/\nx",
            "https://",
            &long,
        ] {
            assert_eq!(safe_link(&link(refused)), None, "{refused}");
        }
    }

    #[test]
    fn filters_by_kind_and_by_the_host_that_the_url_has() {
        let links =
            [link("https://a.example/"), ActionLink { kind: "sign_in".into(), ..link("https://b.example/") }];
        let filter = LinkFilter::new(Some(LinkKind::SignIn), &["B.example".to_owned()]).unwrap();
        let found = filter.of_kind(&links);
        assert!(found.len() == 1 && filter.allows(&found[0]));
        let other = LinkFilter::new(None, &["claimed.example".to_owned()]).unwrap();
        assert!(other.of_kind(&links).iter().all(|link| !other.allows(link)));
        assert!(LinkFilter::new(None, &["a b".to_owned()]).is_err());
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert!(LinkKind::ALL.into_iter().all(|kind| kind.name().parse() == Ok(kind)));
        assert_eq!("track".parse::<LinkKind>(), Err(UnknownKind));
    }
}
