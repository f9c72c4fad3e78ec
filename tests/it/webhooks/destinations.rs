//! Destinations: tenants choose URLs, and reach no private network with them.

mod allowed_networks;
mod rebinding;

use std::net::{IpAddr, Ipv4Addr};

use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::receiver::{Identity, ca_file};
use tempmail_tests::rows::{TenantLimit, set_limit};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, TestDns};

use super::{create_webhook, first_attempts, is_blocked, list_attempts, outcome};

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

/// Domains of private networks, and a name in each.
const PRIVATE_NAMES: [(&str, &str); 7] = [
    ("receiver", "receiver"),
    ("local", "printer.local"),
    ("internal", "vault.internal"),
    ("home.arpa", "router.home.arpa"),
    ("svc", "api.ns.svc"),
    ("svc.cluster.local", "api.ns.svc.cluster.local"),
    ("example.internal", "www.example.internal"),
];

#[tokio::test(flavor = "multi_thread")]
async fn blocks_private_names_without_a_dns_query() {
    let (dns, app) = app_without_private_networks().await;
    let (loopback, _) = loopback_addresses();
    let receiver = receiver_at(loopback, ALLOWED_PORT, &[PUBLIC_DOMAIN]).await;
    let mut urls = Vec::new();
    for (domain, name) in PRIVATE_NAMES {
        dns.domain(domain, 1).await;
        dns.set_addresses(name, &[loopback.into()]).await;
        let spellings =
            [name.to_owned(), format!("{name}."), name.to_uppercase(), format!("missing.{domain}")];
        urls.extend(spellings.map(|name| format!("https://{name}:{ALLOWED_PORT}/in")));
    }
    urls.retain(|url| !url.contains("missing.receiver"));
    for name in
        ["missing", "localhost", "LocalHost.", "a.localhost", "\u{ff4c}ocalhost", "svc", "a\u{3002}local"]
    {
        urls.push(format!("https://{name}:{ALLOWED_PORT}/in"));
        urls.push(format!("https://{name}/in"));
    }
    assert_blocked_without_a_query(&app, &dns, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_other_ports_without_a_dns_query() {
    let (dns, app) = app_without_private_networks().await;
    let (loopback, _) = loopback_addresses();
    let name = format!("hooks.{PUBLIC_DOMAIN}");
    dns.set_addresses(&name, &[loopback.into()]).await;
    let receiver = receiver_at(loopback, 0, &[&name]).await;
    let ports = [1, 22, 25, 80, 444, 2379, 5432, 6379, 6443, 8080, 8444, 9443, 10250, 65535];
    let mut urls: Vec<String> = ports.iter().map(|port| format!("https://{name}:{port}/in")).collect();
    urls.push(receiver.url_for_host(&name));
    assert_blocked_without_a_query(&app, &dns, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

/// Such URLs can't be created over HTTP; rows may have them all the same.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_ip_addresses_and_other_schemes_at_delivery() {
    let (dns, app) = app_without_private_networks().await;
    let (loopback, _) = loopback_addresses();
    let receiver = receiver_at(loopback, ALLOWED_PORT, &[PUBLIC_DOMAIN]).await;
    dns.set_addresses(&format!("hooks.{PUBLIC_DOMAIN}"), &[loopback.into()]).await;
    let [_, a, b, c] = loopback.octets();
    let hosts = [
        loopback.to_string(),
        format!("{loopback}."),
        loopback.to_bits().to_string(),
        format!("0x{:x}", loopback.to_bits()),
        format!("0{:o}", loopback.to_bits()),
        format!("0x7f.{a}.{b}.{c}"),
        format!("0177.{a:#o}.{b}.{c}").replace("0o", "0"),
        format!("127.{}", loopback.to_bits() & 0x00ff_ffff),
        format!("\u{ff11}\u{ff12}\u{ff17}.{a}.{b}.{c}"),
        format!("127\u{3002}{a}\u{3002}{b}\u{3002}{c}"),
        format!("%31%32%37.{a}.{b}.{c}"),
        format!("[{}]", loopback.to_ipv6_mapped()),
        "[::1]".to_owned(),
        "8.8.8.8".to_owned(),
        "[2001:4860:4860::8888]".to_owned(),
    ];
    let mut urls = hosts.map(|host| format!("https://{host}:{ALLOWED_PORT}/in")).to_vec();
    urls.extend([
        format!("https://user@{loopback}:{ALLOWED_PORT}/in"),
        format!("http://hooks.{PUBLIC_DOMAIN}:{ALLOWED_PORT}/in"),
        format!("http://hooks.{PUBLIC_DOMAIN}:443/in"),
        format!("ftp://hooks.{PUBLIC_DOMAIN}:{ALLOWED_PORT}/in"),
        "file:///etc/passwd".to_owned(),
        "no URL".to_owned(),
        String::new(),
    ]);
    assert_blocked_without_a_query(&app, &dns, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

async fn assert_blocked_without_a_query(app: &App, dns: &TestDns, urls: &[String]) {
    for (url, attempt) in urls.iter().zip(first_attempts(app, urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!(dns.recursive_server().queries(), []);
}

/// Names in the hosts file of this machine have loopback addresses, which are allowed; DNS has none of the
/// names.
#[tokio::test(flavor = "multi_thread")]
async fn does_not_read_the_hosts_file() {
    let dns = TestDns::start().await;
    let settings = dns.settings(DnsMode::Recursive);
    let app = App::builder().receivers().config(|config| config.dns = settings).start().await;
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
    let queries = dns.recursive_server().queries();
    for name in names {
        // Without a search domain of this machine.
        let name = format!("{name}.");
        assert!(queries.iter().any(|query| query.name.eq_ignore_ascii_case(&name)), "{name} in {queries:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resolves_localhost_to_both_loopbacks_without_a_dns_query() {
    let dns = TestDns::start().await;
    dns.domain("localhost", 1).await;
    dns.set_addresses("a.localhost", &["8.8.8.8".parse().unwrap()]).await;
    let settings = dns.settings(DnsMode::Recursive);
    // One of the two is not allowed.
    let builder = App::builder().config(|config| {
        config.dns = settings;
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = vec!["127.0.0.1/32".parse().unwrap()];
    });
    let app = builder.start().await;
    let receiver = receiver_at([127, 0, 0, 1], 0, &["localhost", "a.localhost"]).await;
    let urls = ["localhost", "a.localhost", "localhost."].map(|name| receiver.url_for_host(name));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!((receiver.connection_count(), dns.recursive_server().queries()), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_checks_both_families() {
    let (dns, app) = app_without_private_networks().await;
    let (loopback, _) = loopback_addresses();
    let receiver = receiver_at(loopback, ALLOWED_PORT, &[PUBLIC_DOMAIN]).await;
    let (four, six): (IpAddr, IpAddr) = (loopback.into(), "fd00::1".parse().unwrap());
    dns.set_addresses(&format!("four.{PUBLIC_DOMAIN}"), &[four]).await;
    dns.set_addresses(&format!("six.{PUBLIC_DOMAIN}"), &[six]).await;
    dns.set_addresses(&format!("both.{PUBLIC_DOMAIN}"), &["2001:4860:4860::8888".parse().unwrap(), four])
        .await;
    let urls =
        ["four", "six", "both"].map(|name| format!("https://{name}.{PUBLIC_DOMAIN}:{ALLOWED_PORT}/in"));
    for (url, attempt) in urls.iter().zip(first_attempts(&app, &urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!(receiver.connection_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_dns_that_fails_or_does_not_respond_as_dns_failure() {
    let (dns, app) = app_without_private_networks().await;
    set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 3).await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    for (name, fault) in
        [("a", NameServerFault::ServFail), ("b", NameServerFault::Refused), ("c", NameServerFault::Silent)]
    {
        dns.recursive_server().set_fault(fault.clone());
        let webhook = create_webhook(&app, &format!("https://{name}.{PUBLIC_DOMAIN}/in")).await;
        app.deliver("box@inbox.localhost", "Hello", "").await;
        let attempt = eventually("an attempt", || async { list_attempts(&app, &webhook).await.pop() }).await;
        assert_eq!(outcome(&attempt), (0, Some("dns_failure")), "{fault:?}: {attempt}");
    }
}
