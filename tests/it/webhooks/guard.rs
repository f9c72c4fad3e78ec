//! Tenants name who is told, and reach nobody inside by it.

mod address;
mod name;
mod opened;
mod rebinding;
mod resolving;

use std::net::{IpAddr, Ipv4Addr};

use tempmail_runtime::config::DnsMode;
use tempmail_tests::receiver::Identity;
use tempmail_tests::{App, Receiver, TestDns};

/// A domain of somebody outside.
const OUTSIDE: &str = "guarded.example";
/// A port that is open to all.
const WEB: u16 = 8443;

/// Two addresses of loopback that no other test has.
fn neighbours() -> (Ipv4Addr, Ipv4Addr) {
    let (a, b) = (rand::random_range(1..=254), rand::random_range(1..=254));
    (Ipv4Addr::new(127, a, b, 1), Ipv4Addr::new(127, a, b, 2))
}

/// A receiver with a certificate for these names.
async fn receiver_at(address: impl Into<IpAddr>, port: u16, names: &[&str]) -> Receiver {
    Receiver::start_at((address.into(), port).into(), &Identity::issued_for(names)).await
}

/// A DNS that knows [`OUTSIDE`], and a tempmail that asks it and opens nothing.
async fn guarded() -> (TestDns, App) {
    let world = TestDns::start().await;
    world.domain(OUTSIDE, 1).await;
    let dns = world.settings(DnsMode::Recursive);
    let app = App::builder().config(|config| config.dns = dns).start().await;
    (world, app)
}
