//! Names that lead somewhere else from one look to the next.

use std::net::IpAddr;

use jiff::SignedDuration;
use tempmail_tests::App;
use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Reaction, ca_file};
use tempmail_tests::wait::eventually;

use super::{neighbours, receiver_at};
use crate::webhooks::{deliveries, outcome, webhook_to};

/// Mails, each of which every webhook is told of.
const ROUNDS: usize = 6;
/// Orders in which a name leads outside (`o`), inside (`i`), to both (`b`), or to the inside by IPv6
/// and outside by IPv4 (`6`): by turns, from one look to the next.
const ORDERS: [&str; 12] =
    ["oi", "io", "ooi", "oii", "ioo", "iio", "oioi", "ob", "bo", "o6", "6o", "oiiooio"];
/// Webhooks of each order.
const OF_EACH: usize = 3;

/// A tempmail that may reach the first address and asks this DNS.
async fn with_dns(dns: &RebindingServer, open: IpAddr) -> App {
    let builder = App::builder().config(|config| {
        config.dns.servers = vec![dns.address()];
        config.webhooks.ca_file = Some(ca_file());
        config.webhooks.allowed_networks = vec![open.into()];
    });
    builder.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_inside_from_one_look_to_the_next_never_does() {
    let (open, inside) = neighbours();
    let dns = RebindingServer::start(move |name, number| {
        let order = name.split('-').next().unwrap_or_default().as_bytes();
        match order.get(number % order.len().max(1)) {
            Some(b'o') => vec![open.into()],
            Some(b'b') => vec![open.into(), inside.into()],
            Some(b'6') => vec![open.into(), inside.to_ipv6_mapped().into()],
            _ => vec![inside.into()],
        }
    })
    .await;
    let app = with_dns(&dns, open.into()).await;
    sqlx::query("UPDATE tenant SET webhook_limit = 1000").execute(&app.pool).await.unwrap();
    let names: Vec<String> = ORDERS
        .iter()
        .flat_map(|order| (0..OF_EACH).map(move |index| format!("{order}-{index}.guarded.example")))
        .collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let receiver = receiver_at(open, 0, &known).await;
    let unreached = receiver_at(inside, receiver.address().port(), &known).await;
    // Each delivery connects anew, and looks the name up for it.
    receiver.react_with(Reaction::StatusWithHeader(204, "connection", "close".to_owned()));
    let mut webhooks = Vec::new();
    for name in &names {
        webhooks.push(webhook_to(&app, &receiver.url_for_host(name)).await);
    }
    app.mailbox(Some(&app.tenant.pro), "told@inbox.localhost").await;
    for round in 1..=ROUNDS {
        app.deliver("told@inbox.localhost", "Told", "").await;
        // Beyond every gap that a failure of the round before has left.
        app.clock.advance(SignedDuration::from_hours(1));
        for webhook in &webhooks {
            let told = || async { (deliveries(&app, webhook).await.len() >= round).then_some(()) };
            eventually("every webhook is tried", told).await;
        }
    }
    let mut blocked = 0;
    for (webhook, name) in webhooks.iter().zip(&names) {
        for attempt in deliveries(&app, webhook).await {
            match outcome(&attempt) {
                (204, None) => {}
                (0, Some("blocked_address")) => blocked += 1,
                _ => panic!("{name}: {attempt}"),
            }
        }
    }
    assert!(
        blocked > ROUNDS && receiver.request_count() > ROUNDS,
        "{blocked} and {}",
        receiver.request_count()
    );
    assert!(dns.query_count() > names.len() * ROUNDS, "each delivery asks: {}", dns.query_count());
    assert_eq!(unreached.connection_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_kept_stays_where_it_was_admitted() {
    let (open, inside) = neighbours();
    let dns = RebindingServer::start(move |_, number| match number {
        0 => vec![open.into()],
        _ => vec![inside.into()],
    })
    .await;
    let app = with_dns(&dns, open.into()).await;
    let receiver = receiver_at(open, 0, &["kept.guarded.example"]).await;
    let unreached = receiver_at(inside, receiver.address().port(), &["kept.guarded.example"]).await;
    let webhook = webhook_to(&app, &receiver.url_for_host("kept.guarded.example")).await;
    app.mailbox(Some(&app.tenant.pro), "told@inbox.localhost").await;
    for count in 1..=3 {
        app.deliver("told@inbox.localhost", "Told", "").await;
        receiver.wait_for_requests(count).await;
    }
    // Without a connection that is kept it is looked up, and found inside.
    receiver.react_with(Reaction::StatusWithHeader(204, "connection", "close".to_owned()));
    app.deliver("told@inbox.localhost", "Told", "").await;
    receiver.wait_for_requests(4).await;
    app.deliver("told@inbox.localhost", "Told", "").await;
    let attempts = eventually("five attempts", || async {
        let attempts = deliveries(&app, &webhook).await;
        (attempts.len() >= 5).then_some(attempts)
    })
    .await;
    assert_eq!(outcome(&attempts[attempts.len() - 5]), (0, Some("blocked_address")));
    assert_eq!((receiver.connection_count(), unreached.connection_count()), (1, 0));
}
