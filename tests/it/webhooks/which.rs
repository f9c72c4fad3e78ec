//! Which mail a webhook is told of.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_tests::{Receiver, SmtpClient, smtp};

use super::{nothing_waits, webhook_of, webhook_to, with_receiver};

/// Mails of the mixture.
const MAILS: usize = 80;

/// Of which tenant's mailbox an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The first.
    Harbour,
    /// The second.
    Acme,
    /// Of no tenant's mailbox.
    Nobody,
}

const ADDRESSES: [(&str, Owner); 13] = [
    ("harbour@inbox.localhost", Owner::Harbour),
    ("harbour+tag@inbox.localhost", Owner::Harbour),
    ("second@inbox.localhost", Owner::Harbour),
    ("box@ships.example", Owner::Harbour),
    ("box+tag@ships.example", Owner::Harbour),
    ("acme@inbox.localhost", Owner::Acme),
    ("box@boats.example", Owner::Acme),
    // Read with the tenants' tokens, and in nobody's mailbox.
    ("any@ships.example", Owner::Nobody),
    ("any@boats.example", Owner::Nobody),
    ("shared@inbox.localhost", Owner::Nobody),
    ("shared+tag@inbox.localhost", Owner::Nobody),
    // A mailbox without a tenant.
    ("free@inbox.localhost", Owner::Nobody),
    ("free+tag@inbox.localhost", Owner::Nobody),
];

/// Subject and address of everything that a receiver was told of.
fn told(receiver: &Receiver) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let of = |event: serde_json::Value| (text(&event["data"]["subject"]), text(&event["data"]["address"]));
    let mut told: Vec<_> = receiver.requests().iter().map(|request| of(request.event())).collect();
    told.sort_unstable();
    told
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "where it fails this tells what led to it")]
async fn each_recipient_that_is_a_mailbox_is_told_to_its_tenant_alone() {
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (app, harbours) = with_receiver().await;
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
    webhook_to(&app, &harbours.url()).await;
    webhook_of(&app, &acme.pro, &acmes.url()).await;

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
                Owner::Nobody => continue,
            };
            of.insert((subject.clone(), (*address).to_owned()));
        }
        let addresses: Vec<_> = recipients.iter().map(|(address, _)| *address).collect();
        let message = smtp::message("ada@client.example", &subject, "");
        assert_eq!(client.transact("ada@client.example", &addresses, &message).await.code, 250);
    }
    nothing_waits(&app).await;
    for (receiver, expected) in [&harbours, &acmes].into_iter().zip(expected) {
        assert_eq!(told(receiver), expected.into_iter().collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_from_before_the_webhook_is_not_told_of() {
    let (app, receiver) = with_receiver().await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "before", "").await;
    webhook_to(&app, &receiver.url()).await;
    app.deliver("name@inbox.localhost", "after", "").await;
    nothing_waits(&app).await;
    assert_eq!(told(&receiver), [("after".to_owned(), "name@inbox.localhost".to_owned())]);
}
