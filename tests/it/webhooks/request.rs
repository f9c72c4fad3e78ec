//! The request for a mail, as the OpenAPI document describes it, and which mail is sent to which webhook.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempmail_tests::rows::count_pending_events;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Receiver, SmtpClient, smtp};
use uuid::Uuid;

use super::{
    app_and_receiver, create_webhook, create_webhook_as, get_webhook, list_attempts, wait_until_delivered,
};
use crate::pro_api::assert_time;

/// The id of a webhook's event: a UUIDv8 of the SHA-256 of the ids of webhook and message.
fn event_id(webhook: Uuid, message: &str) -> String {
    let ids = [webhook, message.parse().unwrap()].map(Uuid::into_bytes).concat();
    let digest = Sha256::digest(ids);
    let id = uuid::Builder::from_custom_bytes(digest[..16].try_into().unwrap()).into_uuid();
    format!("evt_{id}")
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_signs_and_records_a_mail_to_a_mailbox() {
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name+tag@inbox.localhost", "Hello", "").await;
    let request = receiver.wait_for_requests(1).await.remove(0);
    let mut data = app.messages(&mailbox).await.remove(0);
    let fields = data.as_object_mut().unwrap();
    let message = fields.remove("id").unwrap();
    fields.remove("is_read");
    data["email_id"] = message.clone();
    data["account_id"] = json!(mailbox.id);
    data["address"] = json!("name+tag@inbox.localhost");
    let event = request.event();
    let id = event["id"].as_str().unwrap();
    assert_eq!(id, event_id(webhook.id, message.as_str().unwrap()));
    assert_eq!(
        event,
        json!({ "id": id, "type": "email.received", "created_at": data["created_at"], "data": data })
    );
    assert_eq!(request.header("x-webhook-id"), id);
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.is_signed_by(&webhook.secret) && !request.is_signed_by("whsec_AAAA"));
    let attempt =
        eventually("the attempt is recorded", || async { list_attempts(&app, &webhook).await.pop() }).await;
    assert_time(&attempt["created_at"]);
    assert_eq!(
        (&attempt["event_id"], &attempt["status_code"], &attempt["error"], &attempt["attempt"]),
        (&json!(id), &json!(204), &json!(null), &json!(1))
    );
    let webhook = get_webhook(&app, &webhook).await;
    assert_time(&webhook["last_triggered_at"]);
    assert_eq!((&webhook["status"], &webhook["failure_count"]), (&json!("active"), &json!(0)));
    assert_eq!(count_pending_events(&app.pool).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_every_header_and_field_of_a_request_and_no_other() {
    let (app, receiver) = app_and_receiver().await;
    let document = app.request(Method::GET, "/openapi.json").send().await.expect(200);
    let described = &document["webhooks"]["email.received"]["post"];
    create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "Hello", "").await;
    let request = receiver.wait_for_requests(1).await.remove(0);

    let documented = described["parameters"].as_array().unwrap().iter();
    let mut documented: Vec<String> =
        documented.map(|one| one["name"].as_str().unwrap().to_lowercase()).collect();
    let sent = request.headers.keys().map(ToString::to_string);
    let mut sent: Vec<String> = sent.filter(|name| name.contains("webhook-")).collect();
    documented.sort();
    sent.sort();
    assert_eq!(documented, sent);

    let mut schema = described["requestBody"]["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let event = request.event();
    assert!(validator.is_valid(&event), "{:?}", validator.iter_errors(&event).collect::<Vec<_>>());
    let fields = |schema: &str| document["components"]["schemas"][schema]["properties"].clone();
    assert_eq!(keys(&fields("EmailReceived")), keys(&event));
    assert_eq!(keys(&fields("ReceivedEmail")), keys(&event["data"]));
    assert!(!validator.is_valid(&json!({})), "every field is required");
}

fn keys(object: &Value) -> Vec<&String> {
    object.as_object().expect("an object").keys().collect()
}

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
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |event: Value| (text(&event["data"]["subject"]), text(&event["data"]["address"]));
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
