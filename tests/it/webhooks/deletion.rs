//! What is deleted while events wait is told to nobody, and nothing of it is left.

use std::time::Duration;

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_tests::app::Mailbox;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, Tenant, send_mail, smtp};

use super::{Webhook, deliveries, has_failed, nothing_waits, webhook_of, webhook_to, with_receiver};
use crate::security::at_rest::rows;

/// Words of the mails that are deleted: of their subject, sender and body.
const WORDS: [&str; 3] = ["kestrel", "ptarmigan", "dunlin"];
/// Mails that wait.
const WAITING: usize = 50;

/// A tenant whose webhook fails while mails wait, and another whose webhook works.
struct Scene {
    app: App,
    receiver: Receiver,
    webhook: Webhook,
    mailbox: Mailbox,
    domain: uuid::Uuid,
    other: Tenant,
    working: Receiver,
}

impl Scene {
    /// Mails to a mailbox under a custom domain wait, since the first attempt failed.
    async fn failing() -> Self {
        let (app, receiver) = with_receiver().await;
        let working = Receiver::start().await;
        let other = app.another_tenant("other").await;
        webhook_of(&app, &other.pro, &working.url()).await;
        app.mailbox(Some(&other.pro), "other@inbox.localhost").await;
        let domain = app.custom_domain(&app.tenant, "ships.example").await;
        let webhook = webhook_to(&app, &receiver.url()).await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), "name@ships.example").await;
        app.mailbox(Some(&app.tenant.pro), "neighbour@inbox.localhost").await;
        receiver.react_next_with([Reaction::Status(500)]);
        let [subject, sender, body] = WORDS;
        let sender = format!("{sender}@client.example");
        let message = smtp::message(&sender, subject, body);
        for _ in 0..WAITING {
            let reply = send_mail(app.smtp(), &sender, &mailbox.address, &message).await;
            assert_eq!(reply.code, 250, "{reply:?}");
        }
        has_failed(&app, &webhook, 1).await;
        let content = rows(&app.pool).await;
        assert!(WORDS.iter().all(|word| content.contains(word)), "the content is found where there is some");
        Self { app, receiver, webhook, mailbox, domain, other, working }
    }

    async fn delete(&self, credential: &str, path: &str) {
        let deleted = self.app.request(Method::DELETE, path).bearer(credential).send().await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
    }

    async fn delete_as_pro(&self, path: &str) {
        self.delete(&self.app.tenant.pro, path).await;
    }

    /// Lets the second attempt begin, which ends some time later.
    async fn tries_again(&self, status: u16) {
        self.receiver.react_next_with([Reaction::DelayedStatus(UNDER_WAY, status)]);
        self.app.clock.advance(SignedDuration::from_secs(6));
        self.receiver.wait_for_requests(2).await;
    }

    /// Asserts that after those that came so far no attempt is made for the mails, although their
    /// webhook is due and mail to a neighbour is told of (where `neighbour`), and to another tenant.
    async fn is_told_nothing(&self, so_far: usize, neighbour: bool) {
        self.app.clock.advance(SignedDuration::from_secs(6));
        if neighbour {
            self.app.deliver("neighbour@inbox.localhost", "stays", "").await;
        }
        self.app.deliver("other@inbox.localhost", "stays", "").await;
        self.working.wait_for_requests(1).await;
        self.app.worker_pass().await;
        nothing_waits(&self.app).await;
        let told: Vec<_> =
            self.receiver.requests().iter().skip(so_far).map(|request| request.event()).collect();
        assert_eq!(told.len(), usize::from(neighbour), "{told:?}");
        assert!(told.iter().all(|event| event["data"]["subject"] == "stays"), "{told:?}");
    }

    /// Asserts that no table has content of the mails.
    async fn nothing_is_left(&self) {
        eventually("the mail is physically gone", || async {
            self.app.worker_pass().await;
            // In compressed data no word can be looked for: of the mails there is none.
            let raws = self.app.count("SELECT count(*) FROM raw").await;
            let messages = self.app.count("SELECT count(*) FROM message").await;
            (raws == messages && messages <= 2).then_some(())
        })
        .await;
        let content = rows(&self.app.pool).await;
        for word in WORDS {
            let octets: String = word.bytes().map(|octet| format!("{octet:02x}")).collect();
            for clear in [word, &octets] {
                let found = content.lines().find(|line| line.contains(clear));
                assert!(found.is_none(), "{word} is in {found:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_mailbox_that_its_owner_deletes() {
    let scene = Scene::failing().await;
    scene.delete(&scene.mailbox.jwt, "/api/me").await;
    scene.is_told_nothing(1, true).await;
    scene.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_mailbox_that_its_tenant_deletes() {
    let scene = Scene::failing().await;
    scene.delete_as_pro(&format!("/pro/api/accounts/{}", scene.mailbox.id)).await;
    scene.is_told_nothing(1, true).await;
    scene.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_domain_that_is_deleted() {
    let scene = Scene::failing().await;
    scene.delete_as_pro(&format!("/pro/api/domains/{}", scene.domain)).await;
    scene.is_told_nothing(1, true).await;
    scene.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_tenant_that_is_deleted() {
    let scene = Scene::failing().await;
    scene.app.tempmail("tenant delete harbour --yes").await.success();
    scene.is_told_nothing(1, false).await;
    scene.nothing_is_left().await;
    assert_eq!(scene.app.emails_as(&scene.other.live, "other@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_webhook_that_is_deleted() {
    let scene = Scene::failing().await;
    scene.delete_as_pro(&format!("/pro/api/webhooks/{}", scene.webhook.id)).await;
    scene.is_told_nothing(1, false).await;
    let emails = scene.app.count("SELECT count(*) FROM message WHERE subject = 'kestrel'").await;
    assert_eq!(usize::try_from(emails).unwrap(), WAITING, "the mail stays");
}

/// How long the attempt takes that is under way: longer than a deletion.
const UNDER_WAY: Duration = Duration::from_secs(8);

/// An attempt is under way, and then succeeds or fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_deleted_while_an_attempt_is_under_way() {
    for status in [204, 500] {
        let scene = Scene::failing().await;
        scene.tries_again(status).await;
        scene.delete(&scene.mailbox.jwt, "/api/me").await;
        let recorded = eventually("it is recorded", || async {
            let mut attempts = deliveries(&scene.app, &scene.webhook).await;
            (attempts.len() == 2).then(|| attempts.swap_remove(0))
        })
        .await;
        assert_eq!((&recorded["status_code"], &recorded["attempt"]), (&status.into(), &2.into()));
        scene.app.clock.advance(SignedDuration::from_secs(36));
        scene.is_told_nothing(2, true).await;
        scene.nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_deleted_while_an_attempt_is_under_way() {
    let scene = Scene::failing().await;
    scene.tries_again(204).await;
    scene.delete_as_pro(&format!("/pro/api/webhooks/{}", scene.webhook.id)).await;
    // Its place is free at once, and the new one is told of new mail alone.
    let anew = webhook_to(&scene.app, &scene.receiver.url()).await;
    scene.app.deliver(&scene.mailbox.address, "stays", "").await;
    let requests = scene.receiver.wait_for_requests(3).await;
    assert!(requests[2].is_signed_by(&anew.secret));
    scene.is_told_nothing(3, false).await;
}
