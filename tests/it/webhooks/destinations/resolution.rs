//! How the host of a receiver is resolved: by DNS only, for both families.

use std::net::IpAddr;

use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::rows::{TenantLimit, set_limit};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, TestDns};

use super::{ALLOWED_PORT, PUBLIC_DOMAIN, app_without_private_networks, loopback_addresses, receiver_at};
use crate::webhooks::{create_webhook, first_attempts, is_blocked, list_attempts, outcome};

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
