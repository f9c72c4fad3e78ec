//! Names whose addresses are not public.

use std::net::IpAddr;

use super::{OUTSIDE, WEB, guarded, neighbours, receiver_at};
use crate::webhooks::{first_attempts, is_blocked, outcome};

/// One or more of each network that is not public, and of each form that has IPv4 inside.
const NOT_PUBLIC: [&str; 53] = [
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
    "::ffff:8.8.8.8",
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
async fn a_name_whose_address_is_not_public_is_blocked() {
    let (world, app) = guarded().await;
    let (here, _) = neighbours();
    let receiver = receiver_at(here, WEB, &[OUTSIDE]).await;
    let mapped: IpAddr = here.to_ipv6_mapped().into();
    let (public_v4, public_v6): (IpAddr, IpAddr) =
        ("8.8.8.8".parse().unwrap(), "2001:4860:4860::8888".parse().unwrap());
    let local_v6: IpAddr = "::1".parse().unwrap();
    let mut answers: Vec<Vec<IpAddr>> =
        NOT_PUBLIC.iter().map(|address| vec![address.parse().unwrap()]).collect();
    answers.extend([
        vec![here.into()],
        vec![mapped],
        // One that is not public is enough.
        vec![public_v4, here.into()],
        vec![here.into(), public_v4],
        vec![public_v4, local_v6],
        vec![public_v6, here.into()],
        vec![public_v4, public_v6, mapped],
    ]);
    let mut urls = Vec::new();
    for (index, addresses) in answers.iter().enumerate() {
        let name = format!("a{index}.{OUTSIDE}");
        world.set_addresses(&name, addresses).await;
        urls.push(format!("https://{name}:{WEB}/in"));
    }
    // Aliases lead nowhere else, be it to a name that may not be called by itself.
    world.domain("corp.internal", 1).await;
    world.set_addresses("vault.corp.internal", &[here.into()]).await;
    for (name, target) in [("alias", "vault.corp.internal"), ("chain", "alias.guarded.example")] {
        world.set_cname(&format!("{name}.{OUTSIDE}"), target).await;
        urls.push(format!("https://{name}.{OUTSIDE}:{WEB}/in"));
    }
    urls.push(format!("https://a0.{OUTSIDE}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        let addresses = urls.iter().position(|one| one == url).and_then(|index| answers.get(index));
        assert!(is_blocked(&attempt), "{url} at {addresses:?}: {attempt}");
    }
    assert_eq!(receiver.connection_count(), 0);
    let asked = world.recursive_server().queries();
    for (index, addresses) in answers.iter().enumerate() {
        let name = format!("a{index}.{OUTSIDE}.");
        let families = asked.iter().filter(|asked| asked.name.eq_ignore_ascii_case(&name)).count();
        assert!(families >= 2, "both families of {addresses:?} are asked for: {families}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_outside_that_has_no_address_is_no_secret() {
    let (world, app) = guarded().await;
    world.set_txt(&format!("text.{OUTSIDE}"), &["no address"]).await;
    let urls = ["nobody", "text"].map(|name| format!("https://{name}.{OUTSIDE}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert_eq!(outcome(&attempt), (0, Some("dns_failure")), "{url}: {attempt}");
    }
}
