//! Which addresses webhooks may be sent to: public ones, and private ones that the installation allows.

use std::net::IpAddr;

use ipnet::IpNet;
use tempmail_model::network::{embedded_ipv4, is_public};
use tempmail_model::webhook::AddressScope;

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

    /// Whether `address` may be connected to. A mapped address is one of IPv4 in every list.
    pub(super) fn allows(&self, scope: AddressScope, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let within = |networks: &[IpNet], address| networks.iter().any(|network| network.contains(&address));
        // Also denied as an IPv6 address that embeds it.
        let denied = within(&self.denied, address)
            || embedded_ipv4(address).is_some_and(|ipv4| within(&self.denied, ipv4.into()));
        let allowed = within(&self.allowed, address) || (scope == AddressScope::Public && is_public(address));
        allowed && !denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str], denied: &[&str]) -> DestinationPolicy {
        let networks =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        DestinationPolicy::new(&networks(allowed), &networks(denied))
    }

    #[test]
    fn denied_networks_override_allowed_ones() {
        let both = policy(&["10.0.0.0/8"], &["10.1.0.0/16", "8.8.8.0/24"]);
        let allows = |scope, address: &str| both.allows(scope, address.parse().unwrap());
        for allowed in ["1.1.1.1", "10.2.3.4", "::ffff:10.2.3.4"] {
            assert!(allows(AddressScope::Public, allowed), "{allowed}");
        }
        assert!(
            allows(AddressScope::AllowedNetworks, "10.2.3.4")
                && !allows(AddressScope::AllowedNetworks, "1.1.1.1")
        );
        for denied in [
            "10.1.2.3",
            "8.8.8.8",
            "192.168.0.1",
            "127.0.0.1",
            "::1",
            "64:ff9b::a02:304",
            "::ffff:192.168.0.1",
        ] {
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
