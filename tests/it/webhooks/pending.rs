//! Pending events: they are dropped with their mail, and kept while their webhook or domain is inactive.

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
use tempmail_tests::{App, Receiver};

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, create_webhook_as, get_webhook, wait_for_failures,
    wait_until_delivered,
};

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
