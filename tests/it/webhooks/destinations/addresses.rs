//! Names whose addresses are not public.

use std::net::IpAddr;

use super::{ALLOWED_PORT, PUBLIC_DOMAIN, app_without_private_networks, loopback_addresses, receiver_at};
use crate::webhooks::{first_attempts, is_blocked, outcome};

/// Addresses of each network that is not public, and of each form of IPv6 that embeds IPv4.
const NOT_PUBLIC: [&str; 52] = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.254",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.8",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.254",
    "198.18.0.1",
    "198.19.255.254",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::10.0.0.1",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:0:7f00:1::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
];

#[tokio::test(flavor = "multi_thread")]
async fn blocks_names_with_an_address_that_is_not_public() {
    let (dns, app) = app_without_private_networks().await;
    let (loopback, _) = loopback_addresses();
    let receiver = receiver_at(loopback, ALLOWED_PORT, &[PUBLIC_DOMAIN]).await;
    let mapped: IpAddr = loopback.to_ipv6_mapped().into();
    let (public_v4, public_v6): (IpAddr, IpAddr) =
        ("8.8.8.8".parse().unwrap(), "2001:4860:4860::8888".parse().unwrap());
    let local_v6: IpAddr = "::1".parse().unwrap();
    let mut answers: Vec<Vec<IpAddr>> =
        NOT_PUBLIC.iter().map(|address| vec![address.parse().unwrap()]).collect();
    answers.extend([
        vec![loopback.into()],
        vec![mapped],
        // One address that is not public is enough.
        vec![public_v4, loopback.into()],
        vec![loopback.into(), public_v4],
        vec![public_v4, local_v6],
        vec![public_v6, loopback.into()],
        vec![public_v4, public_v6, mapped],
    ]);
    let mut urls = Vec::new();
    for (index, addresses) in answers.iter().enumerate() {
        let name = format!("a{index}.{PUBLIC_DOMAIN}");
        dns.set_addresses(&name, addresses).await;
        urls.push(format!("https://{name}:{ALLOWED_PORT}/in"));
    }
    // Aliases are followed, also to a name that a URL may not have.
    dns.domain("corp.internal", 1).await;
    dns.set_addresses("vault.corp.internal", &[loopback.into()]).await;
    for (name, target) in [("alias", "vault.corp.internal"), ("chain", "alias.guarded.example")] {
        dns.set_cname(&format!("{name}.{PUBLIC_DOMAIN}"), target).await;
        urls.push(format!("https://{name}.{PUBLIC_DOMAIN}:{ALLOWED_PORT}/in"));
    }
    urls.push(format!("https://a0.{PUBLIC_DOMAIN}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        let addresses = urls.iter().position(|one| one == url).and_then(|index| answers.get(index));
        assert!(is_blocked(&attempt), "{url} at {addresses:?}: {attempt}");
    }
    assert_eq!(receiver.connection_count(), 0);
    let queries = dns.recursive_server().queries();
    for (index, addresses) in answers.iter().enumerate() {
        let name = format!("a{index}.{PUBLIC_DOMAIN}.");
        let count = queries.iter().filter(|query| query.name.eq_ignore_ascii_case(&name)).count();
        assert!(count >= 2, "both families of {addresses:?} are queried: {count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_public_name_without_an_address_as_dns_failure() {
    let (dns, app) = app_without_private_networks().await;
    dns.set_txt(&format!("text.{PUBLIC_DOMAIN}"), &["no address"]).await;
    let urls = ["missing", "text"].map(|name| format!("https://{name}.{PUBLIC_DOMAIN}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert_eq!(outcome(&attempt), (0, Some("dns_failure")), "{url}: {attempt}");
    }
}
