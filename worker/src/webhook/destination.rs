//! Which destinations webhooks may have: public ones, and private ones that the installation allows.

use std::net::IpAddr;

use ipnet::IpNet;
use tempmail_model::network::{embedded_ipv4, is_public};
use url::{Host, Url};

/// Ports of HTTPS; other services listen on other ports.
const PORTS: [u16; 2] = [443, 8443];
/// Top-level names of private networks.
const PRIVATE_SUFFIXES: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "svc"];

/// Which addresses the host of a URL may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressScope {
    /// Public ones, and those of allowed networks.
    Public,
    /// Those of allowed networks only.
    AllowedNetworks,
}

/// The networks that the installation allows and denies.
#[derive(Debug, Clone)]
pub(super) struct DestinationPolicy {
    allowed: Vec<IpNet>,
    denied: Vec<IpNet>,
}

impl DestinationPolicy {
    pub(super) fn new(allowed: &[IpNet], denied: &[IpNet]) -> Self {
        Self { allowed: allowed.to_vec(), denied: denied.to_vec() }
    }

    /// The addresses that the host of `url` may have; `None` if the URL is refused, whatever DNS says.
    pub(super) fn scope_of(&self, url: &Url) -> Option<AddressScope> {
        let name = match url.host() {
            Some(Host::Domain(name)) if url.scheme() == "https" => name.trim_end_matches('.'),
            _ => return None,
        };
        let port = url.port_or_known_default().unwrap_or_default();
        if !is_private_name(name) && PORTS.contains(&port) {
            Some(AddressScope::Public)
        } else if self.allowed.is_empty() {
            None
        } else {
            Some(AddressScope::AllowedNetworks)
        }
    }

    /// Whether `address` may be connected to.
    pub(super) fn allows(&self, scope: AddressScope, address: IpAddr) -> bool {
        let within = |networks: &[IpNet], address| networks.iter().any(|network| network.contains(&address));
        // Also denied as an IPv6 address that embeds it.
        let denied = within(&self.denied, address)
            || embedded_ipv4(address).is_some_and(|ipv4| within(&self.denied, ipv4.into()));
        let allowed = within(&self.allowed, address) || (scope == AddressScope::Public && is_public(address));
        allowed && !denied
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

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str], denied: &[&str]) -> DestinationPolicy {
        let networks =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        DestinationPolicy::new(&networks(allowed), &networks(denied))
    }

    fn scope_of(policy: &DestinationPolicy, url: &str) -> Option<AddressScope> {
        policy.scope_of(&Url::parse(url).unwrap())
    }

    #[test]
    fn refuses_private_names_and_other_ports() {
        let public = policy(&[], &[]);
        for url in ["https://hooks.example/", "https://hooks.example:8443/", "https://notlocal.example./"] {
            assert_eq!(scope_of(&public, url), Some(AddressScope::Public), "{url}");
        }
        let internal = policy(&["10.0.0.0/8"], &[]);
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
            assert_eq!(scope_of(&public, url), None, "{url}");
            assert_eq!(scope_of(&internal, url), Some(AddressScope::AllowedNetworks), "{url}");
        }
        for url in ["https://127.0.0.1/", "https://[::1]/", "https://0x7f.1/", "http://hooks.example/"] {
            assert_eq!(scope_of(&internal, url), None, "{url}");
        }
    }

    #[test]
    fn denied_networks_override_allowed_ones() {
        let both = policy(&["10.0.0.0/8"], &["10.1.0.0/16", "8.8.8.0/24"]);
        let allows = |scope, address: &str| both.allows(scope, address.parse().unwrap());
        assert!(allows(AddressScope::Public, "1.1.1.1") && allows(AddressScope::Public, "10.2.3.4"));
        assert!(
            allows(AddressScope::AllowedNetworks, "10.2.3.4")
                && !allows(AddressScope::AllowedNetworks, "1.1.1.1")
        );
        for denied in ["10.1.2.3", "8.8.8.8", "192.168.0.1", "127.0.0.1", "::1", "64:ff9b::a02:304"] {
            assert!(!allows(AddressScope::Public, denied), "{denied}");
        }
        let all = policy(&["0.0.0.0/0", "::/0"], &["10.1.0.0/16"]);
        let allows = |address: &str| all.allows(AddressScope::AllowedNetworks, address.parse().unwrap());
        for denied in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1"] {
            assert!(!allows(denied), "{denied}");
        }
        assert!(allows("10.2.0.1") && allows("::ffff:10.2.0.1") && allows("::1"));
    }
}
