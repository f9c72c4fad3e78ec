//! Networks that an installation allows and denies.

use std::net::IpAddr;

use serde_json::Value;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::{App, TestDns};

use super::{PUBLIC_DOMAIN, loopback_addresses, receiver_at};
use crate::webhooks::{first_attempts, is_blocked, outcome};

/// A DNS with public and private domains, and a tempmail that queries it, with these networks.
async fn app_with_networks(allowed: &[&str], denied: &[&str]) -> (TestDns, App) {
    let dns = TestDns::start().await;
    for domain in [PUBLIC_DOMAIN, "corp.internal"] {
        dns.domain(domain, 1).await;
    }
    let settings = dns.settings(DnsMode::Recursive);
    let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let app = App::builder().config(|config| {
        config.dns = settings;
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = networks(allowed);
        config.webhooks.denied_networks = networks(denied);
    });
    (dns, app.start().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn reaches_allowed_networks_and_not_denied_ones() {
    let (open, closed) = loopback_addresses();
    let denied = format!("{closed}/32");
    // All of loopback and all of IPv6 are allowed: an address is denied in every form.
    let (dns, app) = app_with_networks(&["127.0.0.0/8", "::/0"], &[&denied]).await;
    let names = ["open.guarded.example", "open.corp.internal"];
    let receiver = receiver_at(open, 0, &names).await;
    let port = receiver.address().port();
    let unreached = receiver_at(closed, port, &["closed.guarded.example"]).await;
    let mapped: IpAddr = closed.to_ipv6_mapped().into();
    let translated: IpAddr = format!("64:ff9b::{closed}").parse().unwrap();
    let (open, closed) = (IpAddr::from(open), IpAddr::from(closed));
    for (name, addresses) in [
        ("open.guarded.example", vec![open]),
        ("open.corp.internal", vec![open]),
        ("closed.guarded.example", vec![closed]),
        ("closed.corp.internal", vec![closed]),
        ("both.guarded.example", vec![open, closed]),
        ("mapped.guarded.example", vec![mapped]),
        ("translated.guarded.example", vec![translated]),
    ] {
        dns.set_addresses(name, &addresses).await;
    }
    let reached = ["open.guarded.example", "open.corp.internal", "OPEN.corp.internal"];
    let blocked = [
        "closed.guarded.example",
        "closed.corp.internal",
        "both.guarded.example",
        "mapped.guarded.example",
        "translated.guarded.example",
        // An address is not a host name, even if it is allowed.
        &open.to_string(),
    ];
    let urls: Vec<String> =
        reached.iter().chain(&blocked).map(|name| format!("https://{name}:{port}/in")).collect();
    let attempts = first_attempts(&app, &urls).await;
    for (url, attempt) in urls.iter().zip(&attempts).take(reached.len()) {
        assert_eq!(outcome(attempt), (204, None), "{url}: {attempt}");
    }
    for (url, attempt) in urls.iter().zip(&attempts).skip(reached.len()) {
        assert!(is_blocked(attempt), "{url}: {attempt}");
    }
    assert_eq!((receiver.request_count(), unreached.connection_count()), (reached.len(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_reveal_which_private_names_exist() {
    let (open, closed) = loopback_addresses();
    let (dns, app) = app_with_networks(&[&format!("{open}/32")], &[]).await;
    let receiver = receiver_at(closed, 0, &["closed.corp.internal"]).await;
    let port = receiver.address().port();
    dns.set_addresses("closed.corp.internal", &[closed.into()]).await;
    dns.set_addresses("public.corp.internal", &["8.8.8.8".parse().unwrap()]).await;
    let silent = dns.domain("silent.internal", 1).await;
    silent[0].set_fault(NameServerFault::Silent);
    let failing = dns.domain("failing.internal", 1).await;
    failing[0].set_fault(NameServerFault::ServFail);
    let names = [
        "closed.corp.internal",
        "public.corp.internal",
        "missing.corp.internal",
        "missing.unknown.internal",
        "a.silent.internal",
        "a.failing.internal",
        "missing",
    ];
    let urls = names.map(|name| format!("https://{name}:{port}/in"));
    let without_ids = |attempt: &Value| {
        let mut attempt = attempt.clone();
        let fields = attempt.as_object_mut().unwrap();
        fields.retain(|key, _| !matches!(key.as_str(), "id" | "event_id" | "created_at"));
        attempt
    };
    let attempts: Vec<Value> = first_attempts(&app, &urls).await.iter().map(without_ids).collect();
    for (url, attempt) in urls.iter().zip(&attempts) {
        assert!(is_blocked(attempt), "{url}: {attempt}");
        assert_eq!(attempt, &attempts[0], "{url}");
    }
    assert_eq!(receiver.connection_count(), 0);
}
