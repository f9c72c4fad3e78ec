//! Names and ports that are closed whatever DNS says.

use tempmail_tests::{App, TestDns};

use super::{OUTSIDE, WEB, guarded, neighbours, receiver_at};
use crate::webhooks::{first_attempts, is_blocked};

/// Domains that only insiders know, and a name under each.
const INSIDE: [(&str, &str); 7] = [
    ("receiver", "receiver"),
    ("local", "printer.local"),
    ("internal", "vault.internal"),
    ("home.arpa", "router.home.arpa"),
    ("svc", "api.ns.svc"),
    ("svc.cluster.local", "api.ns.svc.cluster.local"),
    ("example.internal", "www.example.internal"),
];

#[tokio::test(flavor = "multi_thread")]
async fn names_of_the_inside_are_blocked_whether_they_exist_or_not_and_dns_is_not_asked() {
    let (world, app) = guarded().await;
    let (here, _) = neighbours();
    let receiver = receiver_at(here, WEB, &[OUTSIDE]).await;
    let mut urls = Vec::new();
    for (domain, name) in INSIDE {
        world.domain(domain, 1).await;
        world.set_addresses(name, &[here.into()]).await;
        let spellings =
            [name.to_owned(), format!("{name}."), name.to_uppercase(), format!("nobody.{domain}")];
        urls.extend(spellings.map(|name| format!("https://{name}:{WEB}/in")));
    }
    urls.retain(|url| !url.contains("nobody.receiver"));
    for name in
        ["nobody", "localhost", "LocalHost.", "a.localhost", "\u{ff4c}ocalhost", "svc", "a\u{3002}local"]
    {
        urls.push(format!("https://{name}:{WEB}/in"));
        urls.push(format!("https://{name}/in"));
    }
    assert_all_blocked_unasked(&app, &world, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_are_not_of_the_web_are_blocked_and_dns_is_not_asked() {
    let (world, app) = guarded().await;
    let (here, _) = neighbours();
    let name = format!("hooks.{OUTSIDE}");
    world.set_addresses(&name, &[here.into()]).await;
    let receiver = receiver_at(here, 0, &[&name]).await;
    let ports = [1, 22, 25, 80, 444, 2379, 5432, 6379, 6443, 8080, 8444, 9443, 10250, 65535];
    let mut urls: Vec<String> = ports.iter().map(|port| format!("https://{name}:{port}/in")).collect();
    urls.push(receiver.url_for_host(&name));
    assert_all_blocked_unasked(&app, &world, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

/// These can't be created: they are rows that are there all the same.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_for_names_and_other_schemes_are_blocked_at_delivery_too() {
    let (world, app) = guarded().await;
    let (here, _) = neighbours();
    let receiver = receiver_at(here, WEB, &[OUTSIDE]).await;
    world.set_addresses(&format!("hooks.{OUTSIDE}"), &[here.into()]).await;
    let [_, a, b, c] = here.octets();
    let hosts = [
        here.to_string(),
        format!("{here}."),
        here.to_bits().to_string(),
        format!("0x{:x}", here.to_bits()),
        format!("0{:o}", here.to_bits()),
        format!("0x7f.{a}.{b}.{c}"),
        format!("0177.{a:#o}.{b}.{c}").replace("0o", "0"),
        format!("127.{}", here.to_bits() & 0x00ff_ffff),
        format!("\u{ff11}\u{ff12}\u{ff17}.{a}.{b}.{c}"),
        format!("127\u{3002}{a}\u{3002}{b}\u{3002}{c}"),
        format!("%31%32%37.{a}.{b}.{c}"),
        format!("[{}]", here.to_ipv6_mapped()),
        "[::1]".to_owned(),
        "8.8.8.8".to_owned(),
        "[2001:4860:4860::8888]".to_owned(),
    ];
    let mut urls = hosts.map(|host| format!("https://{host}:{WEB}/in")).to_vec();
    urls.extend([
        format!("https://user@{here}:{WEB}/in"),
        format!("http://hooks.{OUTSIDE}:{WEB}/in"),
        format!("http://hooks.{OUTSIDE}:443/in"),
        format!("ftp://hooks.{OUTSIDE}:{WEB}/in"),
        "file:///etc/passwd".to_owned(),
        "no URL".to_owned(),
        String::new(),
    ]);
    assert_all_blocked_unasked(&app, &world, &urls).await;
    assert_eq!(receiver.connection_count(), 0);
}

async fn assert_all_blocked_unasked(app: &App, world: &TestDns, urls: &[String]) {
    for (url, attempt) in urls.iter().zip(first_attempts(app, urls).await) {
        assert!(is_blocked(&attempt), "{url}: {attempt}");
    }
    assert_eq!(world.recursive_server().queries(), []);
}
