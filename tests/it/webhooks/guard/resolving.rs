//! Who is asked for a receiver's addresses: DNS, for all of them, and nobody else.

use std::net::IpAddr;

use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::Fault;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::{App, TestDns};

use super::{OUTSIDE, WEB, guarded, neighbours, receiver_at};
use crate::webhooks::{first_attempts, is_blocked, outcome};

/// What is in the file of this machine leads to loopback, which is open; DNS knows none of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_file_is_not_read() {
    let world = TestDns::start().await;
    let dns = world.settings(DnsMode::Recursive);
    let app = App::builder().receivers().config(|config| config.dns = dns).start().await;
    let file = std::fs::read_to_string("/etc/hosts").unwrap();
    let lines = file.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names = lines.flat_map(|line| line.split_whitespace().skip(1));
    let names: Vec<&str> = names.filter(|name| !name.starts_with("localhost")).collect();
    let receiver = receiver_at([127, 0, 0, 1], 0, &["localhost"]).await;
    let urls: Vec<String> = names.iter().map(|name| receiver.url_for_host(name)).collect();
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!(receiver.connection_count(), 0);
    let asked = world.recursive_server().queries();
    for name in names {
        // As it is: without a domain of this machine's behind it.
        let name = format!("{name}.");
        assert!(asked.iter().any(|asked| asked.name.eq_ignore_ascii_case(&name)), "{name} in {asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn localhost_is_both_loopbacks_and_dns_is_not_asked() {
    let world = TestDns::start().await;
    world.domain("localhost", 1).await;
    world.set_addresses("a.localhost", &["8.8.8.8".parse().unwrap()]).await;
    let dns = world.settings(DnsMode::Recursive);
    // One of the two is not open.
    let builder = App::builder().config(|config| {
        config.dns = dns;
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = vec!["127.0.0.1/32".parse().unwrap()];
    });
    let app = builder.start().await;
    let receiver = receiver_at([127, 0, 0, 1], 0, &["localhost", "a.localhost"]).await;
    let urls = ["localhost", "a.localhost", "localhost."].map(|name| receiver.url_for_host(name));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!((receiver.connection_count(), world.recursive_server().queries()), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_families_are_asked_and_judged() {
    let (world, app) = guarded().await;
    let (here, _) = neighbours();
    let receiver = receiver_at(here, WEB, &[OUTSIDE]).await;
    let (four, six): (IpAddr, IpAddr) = (here.into(), "fd00::1".parse().unwrap());
    world.set_addresses(&format!("four.{OUTSIDE}"), &[four]).await;
    world.set_addresses(&format!("six.{OUTSIDE}"), &[six]).await;
    world.set_addresses(&format!("both.{OUTSIDE}"), &["2001:4860:4860::8888".parse().unwrap(), four]).await;
    let urls = ["four", "six", "both"].map(|name| format!("https://{name}.{OUTSIDE}:{WEB}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!(receiver.connection_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dns_that_fails_or_says_nothing_is_a_dns_failure() {
    for fault in [Fault::ServFail, Fault::Refused, Fault::Silent] {
        let (world, app) = guarded().await;
        world.recursive_server().set_fault(fault.clone());
        let urls = [format!("https://hooks.{OUTSIDE}/in")];
        let attempt = first_attempts(&app, &urls).await.remove(0);
        assert_eq!(outcome(&attempt), (0, Some("dns_failure")), "{fault:?}: {attempt}");
    }
}
