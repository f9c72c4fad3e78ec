//! Which mail is sent to which webhook.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_tests::{Receiver, SmtpClient, smtp};

use super::{app_and_receiver, create_webhook, create_webhook_as, wait_until_delivered};

/// Mails with random recipients.
const MAILS: usize = 80;

/// The tenant whose webhook gets mail to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The default tenant.
    Harbour,
    /// The other tenant.
    Acme,
    /// None: it is not a tenant's mailbox.
    NoTenant,
}

const ADDRESSES: [(&str, Owner); 13] = [
    ("harbour@inbox.localhost", Owner::Harbour),
    ("harbour+tag@inbox.localhost", Owner::Harbour),
    ("second@inbox.localhost", Owner::Harbour),
    ("box@ships.example", Owner::Harbour),
    ("box+tag@ships.example", Owner::Harbour),
    ("acme@inbox.localhost", Owner::Acme),
    ("box@boats.example", Owner::Acme),
    // Tenants read these with their tokens, but they are not in a mailbox.
    ("any@ships.example", Owner::NoTenant),
    ("any@boats.example", Owner::NoTenant),
    ("shared@inbox.localhost", Owner::NoTenant),
    ("shared+tag@inbox.localhost", Owner::NoTenant),
    // A mailbox without a tenant.
    ("free@inbox.localhost", Owner::NoTenant),
    ("free+tag@inbox.localhost", Owner::NoTenant),
];

/// Subject and address of every event that a receiver got, sorted.
fn received_events(receiver: &Receiver) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let of = |event: serde_json::Value| (text(&event["data"]["subject"]), text(&event["data"]["address"]));
    let mut events: Vec<_> = receiver.requests().iter().map(|request| of(request.event())).collect();
    events.sort_unstable();
    events
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "a failure shows the seed")]
async fn sends_each_recipient_only_to_the_tenant_of_its_mailbox() {
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (app, harbours) = app_and_receiver().await;
    let acmes = Receiver::start().await;
    let acme = app.another_tenant("acme").await;
    app.custom_domain(&app.tenant, "ships.example").await;
    app.custom_domain(&acme, "boats.example").await;
    for address in ["harbour@inbox.localhost", "second@inbox.localhost", "box@ships.example"] {
        app.mailbox(Some(&app.tenant.pro), address).await;
    }
    for address in ["acme@inbox.localhost", "box@boats.example"] {
        app.mailbox(Some(&acme.pro), address).await;
    }
    app.mailbox(None, "free@inbox.localhost").await;
    create_webhook(&app, &harbours.url()).await;
    create_webhook_as(&app, &acme.pro, &acmes.url()).await;

    let mut expected: [BTreeSet<(String, String)>; 2] = Default::default();
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for mail in 0..MAILS {
        let subject = format!("mail {mail}");
        let count = random.random_range(1..=ADDRESSES.len());
        let recipients: Vec<_> = ADDRESSES.sample(&mut random, count).copied().collect();
        for (address, owner) in &recipients {
            let of = match owner {
                Owner::Harbour => &mut expected[0],
                Owner::Acme => &mut expected[1],
                Owner::NoTenant => continue,
            };
            of.insert((subject.clone(), (*address).to_owned()));
        }
        let addresses: Vec<_> = recipients.iter().map(|(address, _)| *address).collect();
        let message = smtp::message("ada@client.example", &subject, "");
        assert_eq!(client.transact("ada@client.example", &addresses, &message).await.code, 250);
    }
    wait_until_delivered(&app).await;
    for (receiver, expected) in [&harbours, &acmes].into_iter().zip(expected) {
        assert_eq!(received_events(receiver), expected.into_iter().collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_send_mail_from_before_the_webhook() {
    let (app, receiver) = app_and_receiver().await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "before", "").await;
    create_webhook(&app, &receiver.url()).await;
    app.deliver("name@inbox.localhost", "after", "").await;
    wait_until_delivered(&app).await;
    assert_eq!(received_events(&receiver), [("after".to_owned(), "name@inbox.localhost".to_owned())]);
}
