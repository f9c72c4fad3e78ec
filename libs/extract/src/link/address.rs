//! Addresses of links: which may be returned, and what they say.

use url::{Host, Url};

use crate::bounds::URL_MAX;

/// An address that may be returned.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// As sent, or resolved.
    pub(super) text: String,
    pub(super) url: Url,
    pub(super) host: String,
}

/// Octets of an address as it is written.
const WRITTEN_MAX: usize = 2 * URL_MAX;

/// Words of addresses that stand for nothing but the place where a link stands.
const IDLE_KEYS: &[&str] = &[
    "lang", "locale", "hl", "ref", "source", "src", "from", "campaign", "medium", "theme", "region",
    "country",
];

/// Words of the path of hosts that count clicks.
const CLICKS: &[&str] = &["click", "clicks", "link", "redirect", "cl", "ls"];

/// What the names of hosts that count clicks begin with.
const CLICK_HOSTS: &[&str] = &[
    "click", "clicks", "link", "links", "lnk", "track", "tracking", "trk", "go", "t", "r", "e", "ct", "url",
    "email", "ablink", "redirect",
];

/// The address that relative links of a part are resolved against; nothing if it is none, or longer than one may be
/// written.
pub(super) fn base_of(written: &str) -> Option<Url> {
    let written = written.trim();
    (written.len() <= WRITTEN_MAX).then(|| Url::parse(written).ok())?
}

impl Address {
    /// Reads the address of a link: absolute http or https, resolved against `base` if it is relative.
    pub(super) fn parse(written: &str, base: Option<&Url>) -> Option<Self> {
        if written.len() > WRITTEN_MAX {
            return None;
        }
        // As browsers do: no white space around it, no line breaks in it.
        let trimmed = written.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        let text: String = trimmed.chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
        let (url, text) = match Url::parse(&text) {
            Ok(url) if text.is_ascii() && !text.contains(' ') => (url, text),
            Ok(url) => {
                let text = url.to_string();
                (url, text)
            }
            Err(_) => {
                if text.is_empty() || text.starts_with('#') {
                    return None;
                }
                let url = base?.join(&text).ok()?;
                let text = url.to_string();
                (url, text)
            }
        };
        let is_web = matches!(url.scheme(), "http" | "https");
        let has_user =
            !url.username().is_empty() || url.password().is_some() || authority(&text).contains('@');
        if !is_web || has_user || text.len() > URL_MAX || !text.is_ascii() {
            return None;
        }
        let host = match url.host()? {
            Host::Domain(domain) => domain.trim_end_matches('.').to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => format!("[{address}]"),
        };
        // The root of the DNS has no name: `https://./`.
        (!host.is_empty()).then_some(Self { text, url, host })
    }

    /// Whether the host is of the same registrable domain.
    pub(super) fn matches(&self, domain: Option<&str>) -> bool {
        let Some(domain) = domain else { return false };
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        if domain.is_empty() || domain.len() > 255 {
            return false;
        }
        let registrable = |of: &str| psl::domain_str(of).map(str::to_owned);
        self.host == domain || registrable(&self.host).is_some_and(|ours| registrable(&domain) == Some(ours))
    }

    /// Whether it has something of its own: a token, an id; not just the address of a page.
    pub(super) fn has_token(&self) -> bool {
        let query = self.url.query_pairs().take(50).any(|(key, value)| {
            !key.starts_with("utm_")
                && !IDLE_KEYS.contains(&&*key)
                && (value.len() >= 3 || (value.is_empty() && key.len() >= 12))
        });
        let fragment =
            self.url.fragment().is_some_and(|fragment| fragment.contains('=') || looks_random(fragment));
        let mut segments = self.url.path_segments().into_iter().flatten().take(50);
        query || fragment || segments.any(|segment| looks_random(segment) || self.is_click(segment))
    }

    /// Whether a piece of the path is the token of a host that counts clicks; such tokens may be short: `/c/AbCdEfG`.
    fn is_click(&self, piece: &str) -> bool {
        let digits = piece.bytes().filter(u8::is_ascii_digit).count();
        let capitals = piece.bytes().skip(1).filter(u8::is_ascii_uppercase).count();
        let letters = piece.bytes().filter(u8::is_ascii_alphabetic).count();
        piece.len() >= 5
            && letters >= 2
            && (digits >= 1 || capitals >= 1)
            && self.host.split('.').next().is_some_and(|label| CLICK_HOSTS.contains(&label))
    }

    /// Whether it has a long random piece, as what is used once has.
    pub(super) fn has_random_token(&self) -> bool {
        let is_random = |piece: &str| piece.len() >= 8 && looks_random(piece);
        let query = self.url.query_pairs().take(50).any(|(_, value)| is_random(&value));
        query
            || self.url.path_segments().into_iter().flatten().take(50).any(is_random)
            || self.url.fragment().is_some_and(is_random)
    }

    /// Whether its path declines something.
    pub(super) fn declines(&self) -> bool {
        self.has_word(&["decline", "reject", "deny", "disavow", "cancel", "refuse", "dismiss"])
    }

    /// Whether its path is that of a page where subscriptions or an account are changed.
    pub(super) fn is_of_settings(&self) -> bool {
        self.has_word(&["settings", "preferences", "unsubscribe", "optout", "opt-out", "security"])
            && !self.has_word(&[
                "privacy", "terms", "help", "support", "contact", "survey", "legal", "blog", "faq",
            ])
    }

    /// Whether its path is that of a page that all mails of a site link to.
    pub(super) fn is_of_site(&self) -> bool {
        self.has_word(&[
            "unsubscribe",
            "preferences",
            "privacy",
            "terms",
            "help",
            "support",
            "contact",
            "survey",
            "feedback",
            "orders",
            "order",
            "invoice",
            "legal",
            "imprint",
            "impressum",
            "abuse",
            "blog",
            "faq",
            "view-in-browser",
            "webversion",
            "settings",
            "optout",
            "opt-out",
            "about",
            "careers",
            "download",
        ]) || (self.has_word(&["track", "tracking"]) && !self.has_word(CLICKS) && !self.has_long_token())
    }

    /// Whether a piece is longer than a parcel's number, as those of hosts are that count clicks.
    fn has_long_token(&self) -> bool {
        let is_long = |piece: &str| piece.len() >= 20 && looks_random(piece);
        self.url.query_pairs().take(50).any(|(_, value)| is_long(&value))
            || self.url.path_segments().into_iter().flatten().take(50).any(is_long)
    }

    fn has_word(&self, words: &[&str]) -> bool {
        let segments = self.url.path_segments().into_iter().flatten().take(50);
        segments.into_iter().any(|segment| words.iter().any(|word| segment.eq_ignore_ascii_case(word)))
    }
}

/// What stands between `//` and the path.
fn authority(text: &str) -> &str {
    let after = text.find("//").map_or(text, |at| &text[at + 2..]);
    &after[..after.find(['/', '?', '#', '\\']).unwrap_or(after.len())]
}

/// Whether a piece of an address is an id or a token rather than a word.
fn looks_random(piece: &str) -> bool {
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    let letters = piece.bytes().filter(u8::is_ascii_alphabetic).count();
    let capitals = piece.bytes().skip(1).filter(u8::is_ascii_uppercase).count();
    let longest = piece.split(['-', '_', '.', '~']).map(str::len).max().unwrap_or(0);
    let is_page = piece.ends_with(".html") || piece.ends_with(".php") || piece.ends_with(".aspx");
    !is_page
        && ((piece.len() >= 6 && digits >= 2 && letters >= 1)
            || (piece.len() >= 5 && letters == 0 && digits >= 5)
            || (piece.len() >= 8 && capitals >= 2 && piece.bytes().any(|byte| byte.is_ascii_lowercase()))
            || longest >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(written: &str, base: Option<&str>) -> Option<String> {
        Address::parse(written, base.and_then(base_of).as_ref()).map(|address| address.text)
    }

    #[test]
    fn addresses_are_returned_as_sent() {
        assert_eq!(
            text(" https://A.example/x?a=1&b=%20 ", None).as_deref(),
            Some("https://A.example/x?a=1&b=%20")
        );
        assert_eq!(text("https://a.example/x\n?t=1", None).as_deref(), Some("https://a.example/x?t=1"));
        assert_eq!(
            text("../v?t=1", Some("https://a.example/m/n/")).as_deref(),
            Some("https://a.example/m/v?t=1")
        );
    }

    #[test]
    fn others_are_not_returned() {
        for written in [
            "mailto:a@b.example",
            "javascript:alert(1)",
            "/v?t=1",
            "#top",
            "https://u@a.example/",
            "https://u:p@a.example/",
            "https://@a.example/",
            "https://./v?t=1",
            "data:text/html,x",
        ] {
            assert_eq!(text(written, None), None, "{written}");
        }
        assert_eq!(text(&format!("https://a.example/{}", "x".repeat(2_048)), None), None);
        assert_eq!(text("/v?t=1", Some(&format!("https://a.example/{}", "x".repeat(5_000)))), None);
    }

    #[test]
    fn tells_tokens_from_pages() {
        let has_token = |text: &str| Address::parse(text, None).unwrap().has_token();
        for token in [
            "https://a.example/v?token=abc123",
            "https://a.example/v/8f3a2b1c9d",
            "https://a.example/#/reset/Ab3dE5gHiJ",
            "https://t.example/CL0/https:%2F%2Fx/1/0100018f",
        ] {
            assert!(has_token(token), "{token}");
        }
        for page in [
            "https://a.example/",
            "https://a.example/login",
            "https://a.example/help/how-to-reset-your-password",
            "https://a.example/login?utm_source=mail&lang=de",
        ] {
            assert!(!has_token(page), "{page}");
        }
    }
}
