//! The states of a custom domain over time, as its DNS records appear, change and disappear.

mod due;
mod findings;
mod handover;
mod loops;
mod pending;
mod race;
mod recheck;

use tempmail_tests::{App, TestDns};

/// Tempmail beside a DNS in which this domain has one server.
async fn app_and_dns(domain: &str) -> (App, TestDns) {
    let dns = TestDns::start().await;
    dns.domain(domain, 1).await;
    let app = App::builder().dns(&dns).start().await;
    (app, dns)
}

/// A state as the interface tells it.
fn state(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}
