//! Public IP addresses. Tenants choose servers that we connect to, and must not reach our own network.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// The networks of IPv4 that are not public.
const PRIVATE_V4: [&str; 15] = [
    "0.0.0.0/8",       // this host
    "10.0.0.0/8",      // private
    "100.64.0.0/10",   // carrier-grade NAT
    "127.0.0.0/8",     // loopback
    "169.254.0.0/16",  // link-local, and clouds' metadata
    "172.16.0.0/12",   // private
    "192.0.0.0/24",    // protocol assignments
    "192.0.2.0/24",    // documentation
    "192.88.99.0/24",  // relays of 6to4
    "192.168.0.0/16",  // private
    "198.18.0.0/15",   // benchmarks
    "198.51.100.0/24", // documentation
    "203.0.113.0/24",  // documentation
    "224.0.0.0/4",     // multicast
    "240.0.0.0/4",     // reserved, broadcast
];

/// The unicast addresses of IPv6 that are assigned for the Internet.
const GLOBAL_V6: &str = "2000::/3";

/// The networks in [`GLOBAL_V6`] that are not public.
const PRIVATE_V6: [&str; 4] = [
    "2001::/23",     // protocol assignments, including Teredo, which embeds IPv4
    "2001:db8::/32", // documentation
    "2002::/16",     // 6to4, which embeds IPv4
    "3fff::/20",     // documentation
];

struct Networks {
    private: Vec<IpNet>,
    global_v6: IpNet,
}

static NETWORKS: LazyLock<Networks> = LazyLock::new(|| {
    let network = |text: &str| text.parse().expect("the constants are networks");
    Networks {
        private: PRIVATE_V4.iter().chain(&PRIVATE_V6).map(|text| network(text)).collect(),
        global_v6: network(GLOBAL_V6),
    }
});

/// Whether the address is public. A mapped address is what it maps: connections to it are of IPv4.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let assigned = address.is_ipv4() || NETWORKS.global_v6.contains(&address);
    assigned && !NETWORKS.private.iter().any(|network| network.contains(&address))
}

/// The IPv4 address that is embedded in an IPv6 address: of `::ffff:0:0/96`, of the well-known prefix of
/// NAT64, and of 6to4.
pub fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let ipv4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(ipv4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_public_addresses() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "172.32.0.1",
            "2606:4700:4700::1111",
            "2a00::1",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn rejects_private_addresses() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.8.9.10",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "2001:db8::1",
            "2001:2::1",
            "3fff::1",
            "100::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn rejects_addresses_that_embed_ipv4() {
        let inside = [
            "::ffff:10.0.0.1",
            "::1.1.1.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "2002:0a00:0001::1",
            "2002:0101:0101::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn extracts_embedded_ipv4_addresses() {
        let inside = |address: &str| embedded_ipv4(address.parse().unwrap());
        for address in ["::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1"] {
            assert_eq!(inside(address), Some([10, 1, 2, 3].into()), "{address}");
        }
        for address in ["10.1.2.3", "::1", "2600::10.1.2.3", "64:ff9b:1::10.1.2.3"] {
            assert_eq!(inside(address), None, "{address}");
        }
    }
}
