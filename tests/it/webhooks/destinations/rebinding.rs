//! DNS rebinding: names whose addresses change between queries.

use std::net::{IpAddr, Ipv4Addr};

use jiff::SignedDuration;
use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Reaction, ca_file};
use tempmail_tests::rows::{TenantLimit, set_limit};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use super::{loopback_addresses, receiver_at};
use crate::webhooks::{CreatedWebhook, create_webhook, list_attempts, outcome};

const BOX: &str = "box@inbox.localhost";
/// Responses to the queries for a name, by turns: an allowed address (`a`), a denied one (`d`), both (`b`),
/// or an allowed IPv4 address and a denied IPv6 one (`6`).
const ORDERS: [&str; 12] =
    ["ad", "da", "aad", "add", "daa", "dda", "adad", "ab", "ba", "a6", "6a", "addaada"];

/// Webhooks whose names are resolved to an allowed and a denied address, in all orders.
struct RebindingFixture {
    app: App,
    dns: RebindingServer,
    webhooks: Vec<(String, CreatedWebhook)>,
    receiver: Receiver,
    unreached: Receiver,
}

impl RebindingFixture {
    /// With this number of webhooks for each order.
    async fn start(webhooks_per_order: usize) -> Self {
        let (allowed, denied) = loopback_addresses();
        let dns = RebindingServer::start(move |name, number| respond(name, number, allowed, denied)).await;
        let app = app_with_dns(&dns, allowed.into()).await;
        set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 1000).await;
        let names: Vec<String> = ORDERS
            .iter()
            .flat_map(|order| {
                (0..webhooks_per_order).map(move |index| format!("{order}-{index}.guarded.example"))
            })
            .collect();
        let certified: Vec<&str> = names.iter().map(String::as_str).collect();
        let receiver = receiver_at(allowed, 0, &certified).await;
        let unreached = receiver_at(denied, receiver.address().port(), &certified).await;
        // Each delivery makes a connection, for which the name is resolved.
        receiver.react_with(Reaction::StatusWithHeader(204, "connection", "close".to_owned()));
        let mut webhooks = Vec::new();
        for name in names {
            let webhook = create_webhook(&app, &receiver.url_for_host(&name)).await;
            webhooks.push((name, webhook));
        }
        app.mailbox(Some(&app.tenant.pro), BOX).await;
        Self { app, dns, webhooks, receiver, unreached }
    }

    /// Delivers mails one after the other, and waits each time until every webhook was tried.
    async fn deliver(&self, mails: usize) {
        for mail in 1..=mails {
            self.app.deliver(BOX, "Hello", "").await;
            // Longer than every delay that a failure of the previous mail has left.
            self.app.clock.advance(SignedDuration::from_hours(1));
            for (name, webhook) in &self.webhooks {
                let tried =
                    || async { (list_attempts(&self.app, webhook).await.len() >= mail).then_some(()) };
                eventually(name, tried).await;
            }
        }
    }

    /// Asserts that each attempt was either sent to the allowed address or blocked, and that both happened
    /// more often than this.
    async fn assert_only_allowed_addresses_were_reached(&self, more_than: usize) {
        let mut blocked = 0;
        for (name, webhook) in &self.webhooks {
            for attempt in list_attempts(&self.app, webhook).await {
                match outcome(&attempt) {
                    (204, None) => {}
                    (0, Some("blocked_address")) => blocked += 1,
                    // On a busy machine so many handshakes may take longer than 5 s.
                    (0, Some("timeout")) => {}
                    _ => panic!("{name}: {attempt}"),
                }
            }
        }
        let sent = self.receiver.request_count();
        assert!(blocked > more_than && sent > more_than, "{blocked} blocked, {sent} sent");
        assert_eq!(self.unreached.connection_count(), 0);
    }
}

/// The addresses in a response to the n-th query for a name, which begins with its order.
fn respond(name: &str, number: usize, allowed: Ipv4Addr, denied: Ipv4Addr) -> Vec<IpAddr> {
    let order = name.split('-').next().unwrap_or_default().as_bytes();
    match order.get(number % order.len().max(1)) {
        Some(b'a') => vec![allowed.into()],
        Some(b'b') => vec![allowed.into(), denied.into()],
        Some(b'6') => vec![allowed.into(), denied.to_ipv6_mapped().into()],
        _ => vec![denied.into()],
    }
}

/// A tempmail that queries this DNS, and that may reach one loopback address.
async fn app_with_dns(dns: &RebindingServer, allowed: IpAddr) -> App {
    let builder = App::builder().config(|config| {
        config.dns.servers = vec![dns.address()];
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = vec![allowed.into()];
    });
    builder.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn never_connects_to_a_denied_address_of_a_rebinding_name() {
    let fixture = RebindingFixture::start(1).await;
    fixture.deliver(3).await;
    fixture.assert_only_allowed_addresses_were_reached(3).await;
    let queries = fixture.dns.query_count();
    assert!(queries > 3 * ORDERS.len(), "each delivery queries: {queries}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_connection_to_an_address_that_was_allowed() {
    let (allowed, denied) = loopback_addresses();
    let dns = RebindingServer::start(move |_, number| match number {
        0 => vec![allowed.into()],
        _ => vec![denied.into()],
    })
    .await;
    let app = app_with_dns(&dns, allowed.into()).await;
    let receiver = receiver_at(allowed, 0, &["kept.guarded.example"]).await;
    let unreached = receiver_at(denied, receiver.address().port(), &["kept.guarded.example"]).await;
    let webhook = create_webhook(&app, &receiver.url_for_host("kept.guarded.example")).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    for count in 1..=3 {
        app.deliver(BOX, "Hello", "").await;
        receiver.wait_for_requests(count).await;
    }
    // Without an open connection the name is resolved again, now to the denied address.
    receiver.react_with(Reaction::StatusWithHeader(204, "connection", "close".to_owned()));
    app.deliver(BOX, "Hello", "").await;
    receiver.wait_for_requests(4).await;
    app.deliver(BOX, "Hello", "").await;
    let attempts = eventually("five attempts", || async {
        let attempts = list_attempts(&app, &webhook).await;
        (attempts.len() >= 5).then_some(attempts)
    })
    .await;
    assert_eq!(outcome(&attempts[attempts.len() - 5]), (0, Some("blocked_address")));
    assert_eq!((receiver.connection_count(), unreached.connection_count()), (1, 0));
}

mod chaos {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: many webhooks and mails, for every timing of the queries"]
    async fn never_connects_to_a_denied_address_over_many_deliveries() {
        let fixture = RebindingFixture::start(3).await;
        fixture.deliver(6).await;
        fixture.assert_only_allowed_addresses_were_reached(6).await;
    }
}
