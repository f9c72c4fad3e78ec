//! Names and ports that are blocked without a DNS query.

use tempmail_tests::{App, TestDns};

use super::{ALLOWED_PORT, PUBLIC_DOMAIN, app_without_private_networks, loopback_addresses, receiver_at};
use crate::webhooks::{first_attempts, is_blocked};

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
