//! Pending events: they are dropped with their mail, of which nothing is left, and kept while their webhook or domain is
//! inactive.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_store::Store;
use tempmail_tests::app::Mailbox;
use tempmail_tests::fleet::Role;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{
    count_leased_webhooks, count_pending_events, restore_verification, set_webhook_failures,
};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, Tenant, send_mail, smtp};

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, create_webhook_as, get_webhook, list_attempts,
    wait_for_failures, wait_until_delivered,
};
use crate::security::rows;

const BOX: &str = "name@inbox.localhost";

/// The longest delay of the fifth attempt after the fourth.
const FIFTH_DELAY_MAX: SignedDuration = SignedDuration::from_mins(12);

/// A mailbox whose webhook has failed once, and mails with pending events.
struct PendingFixture {
    app: App,
    receiver: Receiver,
    webhook: CreatedWebhook,
    mailbox: Mailbox,
}

impl PendingFixture {
    /// With mails `1`, `2`, ….
    async fn after_a_failure(mails: usize, limits: &str) -> Self {
        let (app, receiver) = app_and_receiver().await;
        if !limits.is_empty() {
            app.tempmail(&format!("tenant set harbour {limits}")).await.success();
        }
        let webhook = create_webhook(&app, &receiver.url()).await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), BOX).await;
        receiver.react_next_with([Reaction::Status(500)]);
        // The next attempt is ten minutes after the failure, however long the mails take.
        set_webhook_failures(&app.pool, 3).await;
        for number in 1..=mails {
            app.deliver(BOX, &number.to_string(), "").await;
        }
        wait_for_failures(&app, &webhook, 4).await;
        Self { app, receiver, webhook, mailbox }
    }

    /// Subjects that are sent once the receiver works again after some time, sorted, with that of a mail that
    /// comes then.
    async fn subjects_sent_after(&self, time: SignedDuration) -> Vec<String> {
        self.app.clock.advance(time);
        self.app.deliver(BOX, "the last", "").await;
        wait_until_delivered(&self.app).await;
        self.subjects_sent()
    }

    /// Subjects of all requests but the first, sorted.
    fn subjects_sent(&self) -> Vec<String> {
        let mut subjects = subjects(&self.receiver).split_off(1);
        subjects.sort_unstable();
        subjects
    }
}

/// The `seq` of all pending events.
async fn pending_events(app: &App) -> Vec<i64> {
    let pending = sqlx::query_scalar("SELECT seq FROM webhook_event ORDER BY seq");
    pending.fetch_all(&app.pool).await.unwrap()
}

/// Waits until no process has a lease.
async fn wait_until_leases_are_released(app: &App) {
    eventually("no webhook has a lease", || async {
        (count_leased_webhooks(&app.pool).await == 0).then_some(())
    })
    .await;
}

fn subjects(receiver: &Receiver) -> Vec<String> {
    let received = receiver.requests();
    received.iter().map(|request| request.event()["data"]["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_events_as_long_as_their_mail() {
    for (limits, hours) in [("", 72), ("--retention-hours 1", 1)] {
        let before_expiry = PendingFixture::after_a_failure(3, limits).await;
        let time = SignedDuration::from_hours(hours);
        let margin = SignedDuration::from_mins(2);
        assert_eq!(
            before_expiry.subjects_sent_after(time - margin).await,
            ["1", "2", "3", "the last"],
            "{hours} h"
        );
        let after_expiry = PendingFixture::after_a_failure(3, limits).await;
        assert_eq!(after_expiry.subjects_sent_after(time + margin).await, ["the last"], "{hours} h");
        assert_eq!(get_webhook(&after_expiry.app, &after_expiry.webhook).await["status"], "active");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_events_of_deleted_mail() {
    let fixture = PendingFixture::after_a_failure(40, "").await;
    let ids: Vec<String> = fixture
        .app
        .emails(BOX)
        .await
        .iter()
        .filter(|email| email["subject"].as_str().unwrap().parse::<u32>().unwrap() != 20)
        .map(|email| email["id"].as_str().unwrap().to_owned())
        .collect();
    for (number, id) in ids.iter().enumerate() {
        if number % 2 == 0 {
            let path = format!("/api/messages/{id}");
            let deleted =
                fixture.app.request(Method::DELETE, &path).bearer(&fixture.mailbox.jwt).send().await;
            assert_eq!(deleted.status, 204);
        } else {
            assert_eq!(fixture.app.delete(&format!("/v1/email/{id}")).await.status, 204);
        }
    }
    assert_eq!(fixture.subjects_sent_after(FIFTH_DELAY_MAX).await, ["20", "the last"]);
}

/// What listed the events may not have seen a message: its plan can be older than the partition.
#[tokio::test(flavor = "multi_thread")]
async fn keeps_an_event_whose_message_is_there_whatever_was_listed() {
    let fixture = PendingFixture::after_a_failure(3, "").await;
    let app = &fixture.app;
    let [first, second, third] = pending_events(app).await[..] else { panic!("there are three") };
    let emails = app.emails(BOX).await;
    let of_second = emails.iter().find(|email| email["subject"] == "2").unwrap()["id"].as_str().unwrap();
    app.delete(&format!("/v1/email/{of_second}")).await.expect(204);

    let store = Store::connect(&app.database().role_url(Role::Worker), 1, "tempmail tests").unwrap();
    let listed = [first, second, third];
    store.delete_events_without_message(fixture.webhook.id, &listed, app.clock.now()).await.unwrap();
    assert_eq!(pending_events(app).await, [first, third]);
    assert_eq!(fixture.subjects_sent_after(FIFTH_DELAY_MAX).await, ["1", "3", "the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_events_of_a_cleared_inbox() {
    let fixture = PendingFixture::after_a_failure(10, "").await;
    assert_eq!(fixture.app.delete(&format!("/v1/inbox/{BOX}")).await.status, 204);
    assert_eq!(fixture.subjects_sent_after(FIFTH_DELAY_MAX).await, ["the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_events_of_a_suspended_tenant() {
    let fixture = PendingFixture::after_a_failure(5, "").await;
    let app = &fixture.app;
    let working = Receiver::start().await;
    let other = app.another_tenant("other").await;
    create_webhook_as(app, &other.pro, &working.url()).await;
    app.mailbox(Some(&other.pro), "other@inbox.localhost").await;
    app.tempmail("tenant suspend harbour").await.success();
    app.advance_hours(1);
    for mails in 1..=3 {
        app.deliver("other@inbox.localhost", "meanwhile", "").await;
        working.wait_for_requests(mails).await;
    }
    assert_eq!(fixture.receiver.request_count(), 1);
    app.tempmail("tenant resume harbour").await.success();
    wait_until_delivered(app).await;
    assert_eq!(fixture.subjects_sent(), ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_sending_when_the_tenant_is_suspended() {
    let (app, receiver) = app_and_receiver().await;
    create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    receiver.react_with(Reaction::HeldStatus(204));
    for number in 1..=20 {
        app.deliver(BOX, &number.to_string(), "").await;
    }
    receiver.wait_for_requests(1).await;
    app.tempmail("tenant suspend harbour").await.success();
    receiver.release_held();
    wait_until_leases_are_released(&app).await;
    assert_eq!(receiver.request_count(), 1, "no request was sent after the suspension");
    assert_eq!(count_pending_events(&app.pool).await, 19);
    receiver.react_with(Reaction::Status(204));
    app.tempmail("tenant resume harbour").await.success();
    wait_until_delivered(&app).await;
    assert_eq!(receiver.request_count(), 20, "each is sent once");
}

/// Events of mailboxes of other domains are sent meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn keeps_events_while_their_domain_does_not_serve() {
    let fixture = PendingFixture::after_a_failure(1, "").await;
    let app = &fixture.app;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    for number in 2..=30 {
        app.deliver("box@ships.example", &number.to_string(), "").await;
    }
    app.end_verification(domain).await;
    app.clock.advance(FIFTH_DELAY_MAX);
    eventually("only events of the domain are pending", || async {
        (count_pending_events(&app.pool).await == 29).then_some(())
    })
    .await;
    for hours in 1..=3 {
        wait_until_leases_are_released(app).await;
        app.advance_hours(1);
        app.deliver(BOX, "meanwhile", "").await;
        fixture.receiver.wait_for_requests(2 + hours).await;
    }
    assert_eq!(fixture.subjects_sent(), ["1", "meanwhile", "meanwhile", "meanwhile"]);
    assert_eq!(get_webhook(app, &fixture.webhook).await["failure_count"], 0, "the receiver did not fail");
    restore_verification(&app.pool, domain).await;
    wait_until_leases_are_released(app).await;
    app.clock.advance(SignedDuration::from_mins(2));
    wait_until_delivered(app).await;
    assert_eq!(fixture.receiver.request_count(), 5 + 29);
}

/// Words in subject, sender and body of the mails that are deleted.
const WORDS: [&str; 3] = ["kestrel", "ptarmigan", "dunlin"];

/// Mails with a pending event.
const PENDING: usize = 50;

const SIXTH_DELAY_MAX: SignedDuration = SignedDuration::from_mins(36);

/// A tenant whose webhook has failed while mails came, and another whose webhook works.
struct DeletionFixture {
    app: App,
    receiver: Receiver,
    webhook: CreatedWebhook,
    mailbox: Mailbox,
    domain: uuid::Uuid,
    other: Tenant,
    working: Receiver,
}

impl DeletionFixture {
    /// Events for a mailbox of a custom domain are pending, since the first attempt failed.
    async fn with_pending_events() -> Self {
        let (app, receiver) = app_and_receiver().await;
        let working = Receiver::start().await;
        let other = app.another_tenant("other").await;
        create_webhook_as(&app, &other.pro, &working.url()).await;
        app.mailbox(Some(&other.pro), "other@inbox.localhost").await;
        let domain = app.custom_domain(&app.tenant, "ships.example").await;
        let webhook = create_webhook(&app, &receiver.url()).await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), "name@ships.example").await;
        app.mailbox(Some(&app.tenant.pro), "neighbour@inbox.localhost").await;
        receiver.react_next_with([Reaction::Status(500)]);
        // The next attempt is ten minutes after the failure, however long the mails take.
        set_webhook_failures(&app.pool, 3).await;
        let [subject, sender, body] = WORDS;
        let sender = format!("{sender}@client.example");
        let message = smtp::message(&sender, subject, body);
        for _ in 0..PENDING {
            let reply = send_mail(app.smtp(), &sender, &mailbox.address, &message).await;
            assert_eq!(reply.code, 250, "{reply:?}");
        }
        wait_for_failures(&app, &webhook, 4).await;
        let content = rows(&app.pool).await;
        assert!(WORDS.iter().all(|word| content.contains(word)), "the search finds content");
        Self { app, receiver, webhook, mailbox, domain, other, working }
    }

    async fn delete(&self, credential: &str, path: &str) {
        let deleted = self.app.request(Method::DELETE, path).bearer(credential).send().await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
    }

    async fn delete_as_pro(&self, path: &str) {
        self.delete(&self.app.tenant.pro, path).await;
    }

    /// Starts the second attempt, to which the receiver responds when it is released.
    async fn start_second_attempt(&self, status: u16) {
        self.receiver.react_next_with([Reaction::HeldStatus(status)]);
        self.app.clock.advance(FIFTH_DELAY_MAX);
        self.receiver.wait_for_requests(2).await;
    }

    /// Asserts that after the first `previous` requests none was sent for the deleted mails, although their
    /// webhook is due, mail to a neighbour of the same webhook is delivered (with `neighbour`), and mail to
    /// another tenant.
    async fn assert_no_further_requests(&self, previous: usize, neighbour: bool) {
        self.app.clock.advance(FIFTH_DELAY_MAX);
        if neighbour {
            self.app.deliver("neighbour@inbox.localhost", "stays", "").await;
        }
        self.app.deliver("other@inbox.localhost", "stays", "").await;
        self.working.wait_for_requests(1).await;
        self.app.worker_pass().await;
        wait_until_delivered(&self.app).await;
        let events: Vec<_> =
            self.receiver.requests().iter().skip(previous).map(|request| request.event()).collect();
        assert_eq!(events.len(), usize::from(neighbour), "{events:?}");
        assert!(events.iter().all(|event| event["data"]["subject"] == "stays"), "{events:?}");
    }

    /// Asserts that no table has content of the deleted mails.
    async fn assert_content_is_gone(&self) {
        eventually("the mail is deleted physically", || async {
            self.app.worker_pass().await;
            // Compressed data can't be searched for words: there must be none of these mails.
            let raws = self.app.count("SELECT count(*) FROM raw").await;
            let messages = self.app.count("SELECT count(*) FROM message").await;
            (raws == messages && messages <= 2).then_some(())
        })
        .await;
        let content = rows(&self.app.pool).await;
        for word in WORDS {
            let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
            for text in [word, &hex] {
                let found = content.lines().find(|line| line.contains(text));
                assert!(found.is_none(), "{word} is in {found:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_nothing_of_a_mailbox_that_its_owner_deleted() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.delete(&fixture.mailbox.jwt, "/api/me").await;
    fixture.assert_no_further_requests(1, true).await;
    fixture.assert_content_is_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_nothing_of_a_mailbox_that_its_tenant_deleted() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.delete_as_pro(&format!("/pro/api/accounts/{}", fixture.mailbox.id)).await;
    fixture.assert_no_further_requests(1, true).await;
    fixture.assert_content_is_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_nothing_of_a_deleted_domain() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.delete_as_pro(&format!("/pro/api/domains/{}", fixture.domain)).await;
    fixture.assert_no_further_requests(1, true).await;
    fixture.assert_content_is_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_nothing_of_a_deleted_tenant() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.app.tempmail("tenant delete harbour --yes").await.success();
    fixture.assert_no_further_requests(1, false).await;
    fixture.assert_content_is_gone().await;
    assert_eq!(fixture.app.emails_as(&fixture.other.live, "other@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_nothing_to_a_deleted_webhook_and_keeps_the_mail() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.delete_as_pro(&format!("/pro/api/webhooks/{}", fixture.webhook.id)).await;
    fixture.assert_no_further_requests(1, false).await;
    let emails = fixture.app.count("SELECT count(*) FROM message WHERE subject = 'kestrel'").await;
    assert_eq!(usize::try_from(emails).unwrap(), PENDING, "the mail stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_an_attempt_in_flight_when_its_mailbox_is_deleted() {
    for status in [204, 500] {
        let fixture = DeletionFixture::with_pending_events().await;
        fixture.start_second_attempt(status).await;
        fixture.delete(&fixture.mailbox.jwt, "/api/me").await;
        fixture.receiver.release_held();
        let recorded = eventually("the attempt is recorded", || async {
            let mut attempts = list_attempts(&fixture.app, &fixture.webhook).await;
            (attempts.len() == 2).then(|| attempts.swap_remove(0))
        })
        .await;
        assert_eq!((&recorded["status_code"], &recorded["attempt"]), (&status.into(), &1.into()));
        fixture.app.clock.advance(SIXTH_DELAY_MAX);
        fixture.assert_no_further_requests(2, true).await;
        fixture.assert_content_is_gone().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_a_webhook_that_is_deleted_while_an_attempt_is_in_flight() {
    let fixture = DeletionFixture::with_pending_events().await;
    fixture.start_second_attempt(204).await;
    fixture.delete_as_pro(&format!("/pro/api/webhooks/{}", fixture.webhook.id)).await;
    // The limit of one webhook allows another at once, which gets events of new mail only.
    let replacement = create_webhook(&fixture.app, &fixture.receiver.url()).await;
    fixture.app.deliver(&fixture.mailbox.address, "stays", "").await;
    let requests = fixture.receiver.wait_for_requests(3).await;
    assert!(requests[2].is_signed_by(&replacement.secret));
    fixture.receiver.release_held();
    fixture.assert_no_further_requests(3, false).await;
}
