//! Destinations: tenants choose URLs, and reach no private network with them.

mod addresses;
mod allowed_networks;
mod ca_file;
mod names;
mod rebinding;
mod resolution;

use std::net::{IpAddr, Ipv4Addr};

use tempmail_runtime::config::DnsMode;
use tempmail_tests::receiver::Identity;
use tempmail_tests::{App, Receiver, TestDns};

/// A public domain.
const PUBLIC_DOMAIN: &str = "guarded.example";
/// A port that every webhook may use.
const ALLOWED_PORT: u16 = 8443;

/// Two loopback addresses that no other test uses.
fn loopback_addresses() -> (Ipv4Addr, Ipv4Addr) {
    let (a, b) = (rand::random_range(1..=254), rand::random_range(1..=254));
    (Ipv4Addr::new(127, a, b, 1), Ipv4Addr::new(127, a, b, 2))
}

/// A receiver with a certificate for these names.
async fn receiver_at(address: impl Into<IpAddr>, port: u16, names: &[&str]) -> Receiver {
    Receiver::start_at((address.into(), port).into(), &Identity::issued_for(names)).await
}

/// A DNS with [`PUBLIC_DOMAIN`], and a tempmail that queries it and allows no private network.
async fn app_without_private_networks() -> (TestDns, App) {
    let dns = TestDns::start().await;
    dns.domain(PUBLIC_DOMAIN, 1).await;
    let settings = dns.settings(DnsMode::Recursive);
    let app = App::builder().config(|config| config.dns = settings).start().await;
    (dns, app)
}
