//! Where webhooks may go: nowhere inside, unless the installation opened it.

use std::net::IpAddr;

use ipnet::IpNet;
use tempmail_model::network::{embedded_ipv4, is_public};
use url::{Host, Url};

/// Ports of the web; others may be anybody's.
const PORTS: [u16; 2] = [443, 8443];
/// Names that are only known inside.
const INSIDE: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "svc"];

/// Which addresses a URL may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public ones, and those that are allowed.
    Public,
    /// Those that are allowed, and no others.
    Allowed,
}

/// The networks that the installation opens and closes.
#[derive(Debug, Clone)]
pub(super) struct Destinations {
    allowed: Vec<IpNet>,
    denied: Vec<IpNet>,
}

impl Destinations {
    pub(super) fn new(allowed: &[IpNet], denied: &[IpNet]) -> Self {
        Self { allowed: allowed.to_vec(), denied: denied.to_vec() }
    }

    /// What `url` may lead to; `None` where that is nothing, whatever DNS says.
    pub(super) fn reach(&self, url: &Url) -> Option<Reach> {
        let name = match url.host() {
            Some(Host::Domain(name)) if url.scheme() == "https" => name.trim_end_matches('.'),
            _ => return None,
        };
        let port = url.port_or_known_default().unwrap_or_default();
        if !is_inside(name) && PORTS.contains(&port) {
            Some(Reach::Public)
        } else if self.allowed.is_empty() {
            None
        } else {
            Some(Reach::Allowed)
        }
    }

    /// Whether a connection to `address` may be made.
    pub(super) fn admits(&self, reach: Reach, address: IpAddr) -> bool {
        let within = |networks: &[IpNet], address| networks.iter().any(|network| network.contains(&address));
        // What is denied is denied in every form.
        let denied = within(&self.denied, address)
            || embedded_ipv4(address).is_some_and(|inside| within(&self.denied, inside.into()));
        let open = within(&self.allowed, address) || (reach == Reach::Public && is_public(address));
        open && !denied
    }
}

/// A name without a dot, or under one that only insiders know.
fn is_inside(name: &str) -> bool {
    let under = |of: &str| {
        let rest = name.len().checked_sub(of.len()).map(|at| name.split_at(at));
        rest.is_some_and(|(rest, end)| {
            end.eq_ignore_ascii_case(of) && (rest.is_empty() || rest.ends_with('.'))
        })
    };
    !name.contains('.') || INSIDE.iter().any(|of| under(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destinations(allowed: &[&str], denied: &[&str]) -> Destinations {
        let networks =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        Destinations::new(&networks(allowed), &networks(denied))
    }

    fn reach(destinations: &Destinations, url: &str) -> Option<Reach> {
        destinations.reach(&Url::parse(url).unwrap())
    }

    #[test]
    fn names_and_ports_of_the_inside_are_closed() {
        let open = destinations(&[], &[]);
        for url in ["https://hooks.example/", "https://hooks.example:8443/", "https://notlocal.example./"] {
            assert_eq!(reach(&open, url), Some(Reach::Public), "{url}");
        }
        let opened = destinations(&["10.0.0.0/8"], &[]);
        for url in [
            "https://receiver/",
            "https://localhost/",
            "https://a.LOCALHOST./",
            "https://printer.local/",
            "https://vault.internal/",
            "https://router.home.arpa/",
            "https://api.ns.svc/",
            "https://api.ns.svc.cluster.local/",
            "https://hooks.example:6379/",
            "https://hooks.example:22/",
        ] {
            assert_eq!(reach(&open, url), None, "{url}");
            assert_eq!(reach(&opened, url), Some(Reach::Allowed), "{url}");
        }
        for url in ["https://127.0.0.1/", "https://[::1]/", "https://0x7f.1/", "http://hooks.example/"] {
            assert_eq!(reach(&opened, url), None, "{url}");
        }
    }

    #[test]
    fn denied_networks_win_over_allowed_ones() {
        let some = destinations(&["10.0.0.0/8"], &["10.1.0.0/16", "8.8.8.0/24"]);
        let admits = |reach, address: &str| some.admits(reach, address.parse().unwrap());
        assert!(admits(Reach::Public, "1.1.1.1") && admits(Reach::Public, "10.2.3.4"));
        assert!(admits(Reach::Allowed, "10.2.3.4") && !admits(Reach::Allowed, "1.1.1.1"));
        for closed in ["10.1.2.3", "8.8.8.8", "192.168.0.1", "127.0.0.1", "::1", "64:ff9b::a02:304"] {
            assert!(!admits(Reach::Public, closed), "{closed}");
        }
        let all = destinations(&["0.0.0.0/0", "::/0"], &["10.1.0.0/16"]);
        let admits = |address: &str| all.admits(Reach::Allowed, address.parse().unwrap());
        for closed in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1"] {
            assert!(!admits(closed), "{closed}");
        }
        assert!(admits("10.2.0.1") && admits("::ffff:10.2.0.1") && admits("::1"));
    }
}
