//! Deletions while events are pending: nothing of the mail is sent any more, and nothing of it is left.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_tests::app::Mailbox;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::set_webhook_failures;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, Tenant, send_mail, smtp};

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, create_webhook_as, list_attempts, wait_for_failures,
    wait_until_delivered,
};
use crate::security::at_rest::rows;

/// Words in subject, sender and body of the mails that are deleted.
const WORDS: [&str; 3] = ["kestrel", "ptarmigan", "dunlin"];
/// Mails with a pending event.
const PENDING: usize = 50;
/// The longest delays of the fifth attempt after the fourth, and of the sixth after the fifth.
const FIFTH_DELAY_MAX: SignedDuration = SignedDuration::from_mins(12);
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
