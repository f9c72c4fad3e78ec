//! Webhooks, declared.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::SYSTEM_DOMAIN;
use tempmail_tests::kubernetes::{SharedWorld, Team, condition};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Receiver, World};

use super::api_token::lose_grant;
use super::secret::{annotate, look, rows, swap, value};

const ROTATE: &str = "tempmail.dev/rotate-requested-at";
const REENABLE: &str = "tempmail.dev/reenable-requested-at";

/// A team with a webhook that leads to a receiver, a Pro token and a mailbox.
struct Stage {
    world: &'static SharedWorld,
    team: Team<'static>,
    receiver: Receiver,
    pro: String,
    address: String,
}

/// The URL of a receiver. The rule of the kind refuses `localhost` as it is usually written; where a
/// name leads is judged at each delivery, whatever it is.
fn url_of(receiver: &Receiver) -> String {
    receiver.url_for_host("LOCALHOST")
}

impl Stage {
    async fn start() -> Self {
        let world = World::shared().await;
        let team = Team::with(world.cluster, "").await;
        let receiver = Receiver::start().await;
        team.apply("ApiToken", "pro", "type: Pro").await.expect("it is taken");
        team.apply("Webhook", "hook", &format!("url: '{}'", url_of(&receiver))).await.expect("it is taken");
        team.wait("apitoken/pro", "Ready").await;
        team.wait("webhook/hook", "Ready").await;
        let pro = value(&team, "pro-token", "token").await;
        let address = format!("{}@{SYSTEM_DOMAIN}", team.tenant);
        let body = json!({"address": address, "password": "correct horse"});
        let made = world.request(Method::POST, "/api/accounts").bearer(&pro).json(&body).send().await;
        made.expect(201);
        Self { world, team, receiver, pro, address }
    }

    async fn secret(&self) -> String {
        value(&self.team, "hook-webhook", "secret").await
    }

    async fn shown(&self) -> Value {
        self.team.get("webhook/hook").await
    }

    async fn deliver(&self) {
        self.world.app.deliver(&self.address, "Hello", "").await;
    }

    /// As the tenth failure in a row does.
    async fn disable(&self) {
        let id = self.shown().await["status"]["webhookId"].as_str().expect("an id").to_owned();
        let disabled =
            sqlx::query("UPDATE webhook SET status = 'disabled', failure_count = 10 WHERE id = $1::uuid")
                .bind(id)
                .execute(&self.world.pool())
                .await;
        assert_eq!(disabled.expect("a row").rows_affected(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_the_secret_verifies_what_is_delivered() {
    let stage = Stage::start().await;
    let shown = stage.shown().await;
    assert_eq!(shown["status"]["state"], "Active");
    assert_eq!(condition(&shown, "Delivering").expect("Delivering")["status"], "True");
    stage.deliver().await;
    assert!(stage.receiver.wait_for_requests(1).await[0].is_signed_by(&stage.secret().await));

    let path = format!("/pro/api/webhooks/{}", shown["status"]["webhookId"].as_str().expect("an id"));
    let request = |method, path: &str| stage.world.request(method, path).bearer(&stage.pro).send();
    request(Method::DELETE, &path).await.assert_api_error(409, "managed_by_kubernetes");
    let rotated = request(Method::POST, &format!("{path}/rotate")).await;
    rotated.assert_api_error(409, "managed_by_kubernetes");

    stage.team.delete("webhook/hook").await;
    assert_eq!(rows(stage.world, &stage.team).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_the_former_secret_signs_nothing() {
    let stage = Stage::start().await;
    let former = stage.secret().await;
    annotate(&stage.team, "webhook/hook", ROTATE, "1").await;
    let secret = eventually("there is another secret", || async {
        let secret = stage.secret().await;
        (secret != former).then_some(secret)
    })
    .await;
    stage.deliver().await;
    let received = stage.receiver.wait_for_requests(1).await;
    assert!(received[0].is_signed_by(&secret) && !received[0].is_signed_by(&former));
    let shown = stage.team.wait("webhook/hook", "Ready").await;
    assert_eq!(shown["status"]["lastHandledRotateAt"], "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_lost_or_changed_is_written_again_as_it_was() {
    let stage = Stage::start().await;
    let secret = stage.secret().await;
    let theirs = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    swap(&stage.team, "hook-webhook", "secret", theirs).await;
    look(&stage.team, "webhook/hook").await;
    eventually("it is put right", || async { (stage.secret().await == secret).then_some(()) }).await;
    stage.team.kubectl(&["delete", "secret", "hook-webhook"]).await.expect("it goes");
    look(&stage.team, "webhook/hook").await;
    stage
        .team
        .kubectl(&["wait", "secret/hook-webhook", "--for=create", "--timeout=120s"])
        .await
        .expect("it is back");
    assert_eq!(stage.secret().await, secret);
    stage.deliver().await;
    let received = stage.receiver.wait_for_requests(1).await;
    assert!(received[0].is_signed_by(&secret) && !received[0].is_signed_by(theirs));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_leave_for_the_url_that_the_object_says_now() {
    let stage = Stage::start().await;
    let other = Receiver::start().await;
    stage.team.apply("Webhook", "hook", &format!("url: '{}'", url_of(&other))).await.expect("it is taken");
    eventually("it is carried out", || async {
        let shown = stage.shown().await;
        (shown["status"]["observedGeneration"] == shown["metadata"]["generation"]).then_some(())
    })
    .await;
    stage.deliver().await;
    assert!(other.wait_for_requests(1).await[0].is_signed_by(&stage.secret().await));
    assert_eq!(stage.receiver.request_count(), 0);

    // What the rules of the API server let pass.
    let refused = stage.team.apply("Webhook", "hook", "url: 'https://-a.example.com/'").await;
    refused.expect("the rules let it pass");
    let shown = stage.team.wait_for_reason("webhook/hook", "Accepted", "InvalidSpec").await;
    let accepted = condition(&shown, "Accepted").expect("Accepted");
    assert_eq!(accepted["message"], "`url` must have a host name, not an IP address.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_one_is_shown_and_made_again_when_somebody_asks() {
    let stage = Stage::start().await;
    // What is asked for while there is nothing to enable is done with.
    annotate(&stage.team, "webhook/hook", REENABLE, "early").await;
    eventually("it is told", || async {
        (stage.shown().await["status"]["lastHandledReenableAt"] == "early").then_some(())
    })
    .await;
    let (former, secret) = (stage.shown().await, stage.secret().await);
    stage.disable().await;
    let shown = stage.team.wait_for_reason("webhook/hook", "Delivering", "AutoDisabled").await;
    assert_eq!(shown["status"]["webhookId"], former["status"]["webhookId"]);
    assert_eq!(shown["status"]["state"], "Disabled");
    assert_eq!(condition(&shown, "Delivering").expect("Delivering")["status"], "False");
    assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "False");
    assert_eq!(condition(&shown, "Stalled").expect("Stalled")["status"], "True");
    happened(&stage.team, "AutoDisabled").await;

    annotate(&stage.team, "webhook/hook", REENABLE, "now").await;
    let shown = stage.team.wait("webhook/hook", "Ready").await;
    assert_eq!(shown["status"]["lastHandledReenableAt"], "now");
    assert_ne!(shown["status"]["webhookId"], former["status"]["webhookId"]);
    let anew = stage.secret().await;
    assert_ne!(anew, secret);
    happened(&stage.team, "WebhookReenabled").await;
    happened(&stage.team, "SecretRotated").await;
    stage.deliver().await;
    assert!(stage.receiver.wait_for_requests(1).await[0].is_signed_by(&anew));
    assert_eq!(rows(stage.world, &stage.team).await, (1, 1));
}

/// Waits for an event in the namespace.
async fn happened(team: &Team<'_>, reason: &str) {
    eventually(reason, || async {
        let events =
            team.kubectl(&["get", "events.events.k8s.io", "-o", "jsonpath={.items[*].reason}"]).await;
        events.expect("a list").split(' ').any(|one| one == reason).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_until_the_owner_has_the_secret() {
    let (stage, other) = (Stage::start().await, Stage::start().await);
    // As after the first half of a rotation.
    sqlx::query("UPDATE webhook SET active = false WHERE id = $1::uuid")
        .bind(stage.shown().await["status"]["webhookId"].as_str())
        .execute(&stage.world.pool())
        .await
        .expect("a row");
    stage.deliver().await;
    other.deliver().await;
    other.receiver.wait_for_requests(1).await;
    assert_eq!(stage.receiver.request_count(), 0);
    look(&stage.team, "webhook/hook").await;
    assert!(stage.receiver.wait_for_requests(1).await[0].is_signed_by(&stage.secret().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_vanishes_is_made_again() {
    let stage = Stage::start().await;
    let former = stage.shown().await;
    sqlx::query("DELETE FROM webhook WHERE id = $1::uuid")
        .bind(former["status"]["webhookId"].as_str())
        .execute(&stage.world.pool())
        .await
        .expect("it goes");
    eventually("there is another", || async {
        let id = &stage.shown().await["status"]["webhookId"];
        (id.is_string() && *id != former["status"]["webhookId"]).then_some(())
    })
    .await;
    stage.deliver().await;
    assert!(stage.receiver.wait_for_requests(1).await[0].is_signed_by(&stage.secret().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_grant_deletes_it_and_one_that_is_given_back_brings_another() {
    let stage = Stage::start().await;
    let (former, secret) = (stage.shown().await, stage.secret().await);
    lose_grant(&stage.team).await;
    stage.team.wait_for_reason("webhook/hook", "Accepted", "TenantRefNotPermitted").await;
    assert_eq!(rows(stage.world, &stage.team).await.1, 0);
    stage.deliver().await;
    stage.team.declare_tenant("").await;
    let shown = stage.team.wait("webhook/hook", "Ready").await;
    assert_ne!(shown["status"]["webhookId"], former["status"]["webhookId"]);
    assert_ne!(stage.secret().await, secret);
    stage.deliver().await;
    assert!(stage.receiver.wait_for_requests(1).await[0].is_signed_by(&stage.secret().await));
    assert_eq!(stage.receiver.request_count(), 1, "nothing was told meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenants_limit_holds() {
    let stage = Stage::start().await;
    stage.team.apply("Webhook", "more", "url: 'https://hooks.example.com/'").await.expect("it is taken");
    stage.team.wait_for_reason("webhook/more", "Accepted", "QuotaExceeded").await;
    assert_eq!(rows(stage.world, &stage.team).await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_made_again_needs_no_room_under_a_limit_that_was_lowered() {
    let stage = Stage::start().await;
    let tenant = format!("tenant/{}", stage.team.tenant);
    stage.team.declare_tenant("  limits: {webhooks: 2}").await;
    eventually("there is room", || async {
        (stage.team.get(&tenant).await["status"]["observedGeneration"] == 2).then_some(())
    })
    .await;
    stage.team.apply("Webhook", "more", "url: 'https://hooks.example.com/'").await.expect("it is taken");
    stage.team.wait("webhook/more", "Ready").await;
    stage.team.declare_tenant("  limits: {webhooks: 1}").await;
    stage.team.wait(&tenant, "QuotaExceeded").await;
    let former = stage.shown().await["status"]["webhookId"].clone();
    stage.disable().await;
    stage.team.wait_for_reason("webhook/hook", "Delivering", "AutoDisabled").await;
    annotate(&stage.team, "webhook/hook", REENABLE, "now").await;
    let shown = stage.team.wait("webhook/hook", "Ready").await;
    assert_ne!(shown["status"]["webhookId"], former);
    assert_eq!(rows(stage.world, &stage.team).await, (1, 2));
}
