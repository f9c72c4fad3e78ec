//! What becomes of events that wait: they go with their mail, and stay while nobody may be told.

use std::time::{Duration, Instant};

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_tests::app::Mailbox;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use super::{Webhook, has_failed, listed, nothing_waits, webhook_of, webhook_to, with_receiver};

const BOX: &str = "name@inbox.localhost";

/// A mailbox whose webhook has failed once, while mails wait.
struct Scene {
    app: App,
    receiver: Receiver,
    webhook: Webhook,
    mailbox: Mailbox,
}

impl Scene {
    /// With so many mails: `1`, `2`, …
    async fn failing(mails: usize, limits: &str) -> Self {
        let (app, receiver) = with_receiver().await;
        if !limits.is_empty() {
            app.tempmail(&format!("tenant set harbour {limits}")).await.success();
        }
        let webhook = webhook_to(&app, &receiver.url()).await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), BOX).await;
        receiver.react_next_with([Reaction::Status(500)]);
        for number in 1..=mails {
            app.deliver(BOX, &number.to_string(), "").await;
        }
        has_failed(&app, &webhook, 1).await;
        Self { app, receiver, webhook, mailbox }
    }

    /// Subjects that the receiver is told of after so long, once it works again, sorted; with that
    /// of a mail that comes then.
    async fn told_after(&self, time: SignedDuration) -> Vec<String> {
        self.app.clock.advance(time);
        self.app.deliver(BOX, "the last", "").await;
        nothing_waits(&self.app).await;
        self.told()
    }

    /// Subjects of all requests but the first.
    fn told(&self) -> Vec<String> {
        let mut told = subjects(&self.receiver).split_off(1);
        told.sort_unstable();
        told
    }
}

/// Waits until no process has a webhook in hand.
async fn nobody_holds_one(app: &App) {
    eventually("no webhook is in hand", || async {
        (app.count("SELECT count(*) FROM webhook WHERE lease_holder IS NOT NULL").await == 0).then_some(())
    })
    .await;
}

fn subjects(receiver: &Receiver) -> Vec<String> {
    let received = receiver.requests();
    received.iter().map(|request| request.event()["data"]["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_wait_as_long_as_their_mail_is_kept() {
    for (limits, hours) in [("", 72), ("--retention-hours 1", 1)] {
        let kept = Scene::failing(3, limits).await;
        let time = SignedDuration::from_hours(hours);
        let little = SignedDuration::from_mins(2);
        assert_eq!(kept.told_after(time - little).await, ["1", "2", "3", "the last"], "{hours} h");
        let expired = Scene::failing(3, limits).await;
        assert_eq!(expired.told_after(time + little).await, ["the last"], "{hours} h");
        assert_eq!(listed(&expired.app, &expired.webhook).await["status"], "active");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_their_mail() {
    let scene = Scene::failing(40, "").await;
    let ids: Vec<String> = scene
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
            let deleted = scene.app.request(Method::DELETE, &path).bearer(&scene.mailbox.jwt).send().await;
            assert_eq!(deleted.status, 204);
        } else {
            assert_eq!(scene.app.delete(&format!("/v1/email/{id}")).await.status, 204);
        }
    }
    assert_eq!(scene.told_after(SignedDuration::from_secs(6)).await, ["20", "the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_that_is_cleared_is_told_of_no_more() {
    let scene = Scene::failing(10, "").await;
    assert_eq!(scene.app.delete(&format!("/v1/inbox/{BOX}")).await.status, 204);
    assert_eq!(scene.told_after(SignedDuration::from_secs(6)).await, ["the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenants_wait_until_it_is_resumed() {
    let scene = Scene::failing(5, "").await;
    let app = &scene.app;
    let working = Receiver::start().await;
    let other = app.another_tenant("other").await;
    webhook_of(app, &other.pro, &working.url()).await;
    app.mailbox(Some(&other.pro), "other@inbox.localhost").await;
    app.tempmail("tenant suspend harbour").await.success();
    app.advance_hours(1);
    for mails in 1..=3 {
        app.deliver("other@inbox.localhost", "meanwhile", "").await;
        working.wait_for_requests(mails).await;
    }
    assert_eq!(scene.receiver.request_count(), 1);
    app.tempmail("tenant resume harbour").await.success();
    nothing_waits(app).await;
    assert_eq!(scene.told(), ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_ends_what_is_being_sent() {
    let (app, receiver) = with_receiver().await;
    webhook_to(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    receiver.react_with(Reaction::DelayedStatus(Duration::from_secs(1), 204));
    for number in 1..=60 {
        app.deliver(BOX, &number.to_string(), "").await;
    }
    receiver.wait_for_requests(2).await;
    app.tempmail("tenant suspend harbour").await.success();
    let suspended = Instant::now() + Duration::from_secs(1);
    nobody_holds_one(&app).await;
    assert!(app.count("SELECT count(*) FROM webhook_event").await > 0, "some wait");
    assert!(receiver.requests().iter().all(|request| request.at < suspended));
    receiver.react_with(Reaction::Status(204));
    app.tempmail("tenant resume harbour").await.success();
    nothing_waits(&app).await;
    assert_eq!(receiver.request_count(), 60, "each is told once");
}

/// A domain that stops serving and serves again: its mailboxes' events wait, those of others do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_does_not_serve_keeps_its_events() {
    let scene = Scene::failing(1, "").await;
    let app = &scene.app;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    for number in 2..=30 {
        app.deliver("box@ships.example", &number.to_string(), "").await;
    }
    app.end_verification(domain).await;
    app.clock.advance(SignedDuration::from_secs(6));
    eventually("what is not of the domain is told", || async {
        (app.count("SELECT count(*) FROM webhook_event").await == 29).then_some(())
    })
    .await;
    for hours in 1..=3 {
        nobody_holds_one(app).await;
        app.advance_hours(1);
        app.deliver(BOX, "meanwhile", "").await;
        scene.receiver.wait_for_requests(2 + hours).await;
    }
    assert_eq!(scene.told(), ["1", "meanwhile", "meanwhile", "meanwhile"]);
    assert_eq!(listed(app, &scene.webhook).await["failure_count"], 0, "it is no failure of the receiver");
    let serves =
        "UPDATE domain SET serves = true, verify_status = 'verified', failure_reason = NULL WHERE id = $1";
    sqlx::query(serves).bind(domain).execute(&app.pool).await.unwrap();
    nobody_holds_one(app).await;
    app.clock.advance(SignedDuration::from_mins(2));
    nothing_waits(app).await;
    assert_eq!(scene.receiver.request_count(), 5 + 29);
}
