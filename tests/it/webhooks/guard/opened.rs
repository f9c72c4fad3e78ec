//! What an installation opens and closes.

use std::net::IpAddr;

use serde_json::Value;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::Fault;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::{App, TestDns};

use super::{OUTSIDE, neighbours, receiver_at};
use crate::webhooks::{first_attempts, is_blocked, outcome};

/// A DNS of the outside and the inside, and a tempmail that asks it, with these networks.
async fn with_networks(allowed: &[&str], denied: &[&str]) -> (TestDns, App) {
    let world = TestDns::start().await;
    for domain in [OUTSIDE, "corp.internal"] {
        world.domain(domain, 1).await;
    }
    let dns = world.settings(DnsMode::Recursive);
    let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let app = App::builder().config(|config| {
        config.dns = dns;
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = networks(allowed);
        config.webhooks.denied_networks = networks(denied);
    });
    (world, app.start().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_is_reached_and_what_is_denied_is_not() {
    let (open, closed) = neighbours();
    let denied = format!("{closed}/32");
    // All of loopback, and all of IPv6: what is denied is denied in every form.
    let (world, app) = with_networks(&["127.0.0.0/8", "::/0"], &[&denied]).await;
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
        world.set_addresses(name, &addresses).await;
    }
    let reached = ["open.guarded.example", "open.corp.internal", "OPEN.corp.internal"];
    let blocked = [
        "closed.guarded.example",
        "closed.corp.internal",
        "both.guarded.example",
        "mapped.guarded.example",
        "translated.guarded.example",
        // Addresses stay no names, be they allowed.
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
async fn of_names_inside_nobody_learns_whether_they_exist() {
    let (open, closed) = neighbours();
    let (world, app) = with_networks(&[&format!("{open}/32")], &[]).await;
    let receiver = receiver_at(closed, 0, &["closed.corp.internal"]).await;
    let port = receiver.address().port();
    world.set_addresses("closed.corp.internal", &[closed.into()]).await;
    world.set_addresses("public.corp.internal", &["8.8.8.8".parse().unwrap()]).await;
    let silent = world.domain("silent.internal", 1).await;
    silent[0].set_fault(Fault::Silent);
    let failing = world.domain("failing.internal", 1).await;
    failing[0].set_fault(Fault::ServFail);
    let names = [
        "closed.corp.internal",
        "public.corp.internal",
        "nobody.corp.internal",
        "nobody.unknown.internal",
        "a.silent.internal",
        "a.failing.internal",
        "nobody",
    ];
    let urls = names.map(|name| format!("https://{name}:{port}/in"));
    let told = |attempt: &Value| {
        let mut told = attempt.clone();
        let own = told.as_object_mut().unwrap();
        own.retain(|key, _| !matches!(key.as_str(), "id" | "event_id" | "created_at"));
        told
    };
    let attempts: Vec<Value> = first_attempts(&app, &urls).await.iter().map(told).collect();
    for (url, attempt) in urls.iter().zip(&attempts) {
        assert!(is_blocked(attempt), "{url}: {attempt}");
        assert_eq!(attempt, &attempts[0], "{url}");
    }
    assert_eq!(receiver.connection_count(), 0);
}
