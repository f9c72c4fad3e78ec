//! Webhook: delivery, rotation, re-enabling and limits.

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::app::SYSTEM_DOMAIN;
use tempmail_tests::kubernetes::{SharedInstallation, Team, assert_conditions, condition_message};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Installation, Receiver};

const OBJECT: &str = "webhook/hook";
const REENABLE: &str = "tempmail.dev/reenable-requested-at";
const PAUSED: &str = "tempmail.dev/paused";
const UNREACHABLE: &str = "url: 'https://hooks.example.com/'";

/// A team with a webhook that delivers to a receiver, a Pro token and a mailbox.
struct WebhookFixture {
    installation: &'static SharedInstallation,
    team: Team,
    receiver: Receiver,
    pro: String,
    address: String,
}

/// The spec of a webhook to a receiver. The rules of the kind reject `localhost` in lower case; whether a
/// request may be sent to the address of a name is checked at each delivery.
fn spec(receiver: &Receiver) -> String {
    format!("url: '{}'", receiver.url_for_host("LOCALHOST"))
}

impl WebhookFixture {
    async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let receiver = Receiver::start().await;
        team.apply("ApiToken", "pro", "type: Pro").await;
        team.apply_ready("Webhook", "hook", &spec(&receiver)).await;
        team.wait_for_condition("apitoken/pro", "Ready").await;
        let pro = team.secret_value("pro-token", "token").await;
        let address = format!("{}@{SYSTEM_DOMAIN}", team.tenant);
        installation.create_mailbox(Some(&pro), &address, "correct horse").await.expect(201);
        Self { installation, team, receiver, pro, address }
    }

    async fn secret(&self) -> String {
        self.team.secret_value("hook-webhook", "secret").await
    }

    async fn shown(&self) -> Value {
        self.team.get(OBJECT).await
    }

    async fn id(&self) -> String {
        self.shown().await["status"]["webhookId"].as_str().expect("an id").to_owned()
    }

    async fn deliver(&self) {
        self.installation.app.deliver(&self.address, "Hello", "").await;
    }

    /// Delivers a mail, and asserts that its event is the first one, signed with the secret.
    async fn assert_delivers(&self) {
        self.deliver().await;
        assert!(self.receiver.wait_for_requests(1).await[0].is_signed_by(&self.secret().await));
    }

    /// Disables the webhook, and waits until the object shows it.
    async fn disable(&self) -> Value {
        self.installation.disable_webhook(&self.id().await).await;
        self.team.wait_for_reason(OBJECT, "Delivering", "AutoDisabled").await
    }

    async fn tokens_and_webhooks(&self) -> (i64, i64) {
        self.installation.tokens_and_webhooks(&self.team).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_events_with_the_value_of_the_secret() {
    let fixture = WebhookFixture::start().await;
    let shown = fixture.shown().await;
    assert_eq!(shown["status"]["state"], "Active");
    assert_conditions(&shown, &[("Delivering", "True")]);
    fixture.assert_delivers().await;
    fixture.team.delete(OBJECT).await;
    assert_eq!(fixture.tokens_and_webhooks().await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_does_not_change_a_declared_webhook() {
    let fixture = WebhookFixture::start().await;
    let path = format!("/pro/api/webhooks/{}", fixture.id().await);
    let request = |method, path: &str| fixture.installation.request(method, path).bearer(&fixture.pro).send();
    request(Method::DELETE, &path).await.assert_api_error(409, "managed_by_kubernetes");
    let rotated = request(Method::POST, &format!("{path}/rotate")).await;
    rotated.assert_api_error(409, "managed_by_kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_nothing_with_the_former_secret_after_a_rotation() {
    let fixture = WebhookFixture::start().await;
    let former = fixture.secret().await;
    fixture.team.request_rotation(OBJECT, "1").await;
    let secret = fixture.team.wait_for_another_value("hook-webhook", "secret", &former).await;
    fixture.deliver().await;
    let received = fixture.receiver.wait_for_requests(1).await;
    assert!(received[0].is_signed_by(&secret) && !received[0].is_signed_by(&former));
    fixture.team.wait_for_status(OBJECT, "lastHandledRotateAt", "1").await;
    fixture.team.wait_for_condition(OBJECT, "Ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_the_same_value_again_when_the_secret_is_changed_or_deleted() {
    let fixture = WebhookFixture::start().await;
    let secret = fixture.secret().await;
    let theirs = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    fixture.team.set_secret_value("hook-webhook", "secret", theirs).await;
    fixture.team.trigger_reconcile(OBJECT).await;
    eventually("the value is restored", || async { (fixture.secret().await == secret).then_some(()) }).await;
    fixture.team.delete("secret/hook-webhook").await;
    fixture.team.trigger_reconcile(OBJECT).await;
    fixture.team.wait_until_created("secret/hook-webhook").await;
    assert_eq!(fixture.secret().await, secret);
    fixture.deliver().await;
    let received = fixture.receiver.wait_for_requests(1).await;
    assert!(received[0].is_signed_by(&secret) && !received[0].is_signed_by(theirs));
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_to_the_url_of_the_newest_spec() {
    let fixture = WebhookFixture::start().await;
    let other = Receiver::start().await;
    fixture.team.apply("Webhook", "hook", &spec(&other)).await;
    fixture.team.wait_until_observed(OBJECT).await;
    fixture.deliver().await;
    assert!(other.wait_for_requests(1).await[0].is_signed_by(&fixture.secret().await));
    assert_eq!(fixture.receiver.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_url_that_the_rules_of_the_kind_accept() {
    let fixture = WebhookFixture::start().await;
    fixture.team.apply("Webhook", "hook", "url: 'https://-a.example.com/'").await;
    let shown = fixture.team.wait_for_reason(OBJECT, "Accepted", "InvalidSpec").await;
    let message = condition_message(&shown, "Accepted");
    assert!(message.contains("`url` must have a host name"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_disabled_webhook_on_request() {
    let fixture = WebhookFixture::start().await;
    // A request is handled even if there is nothing to enable.
    fixture.team.annotate(OBJECT, REENABLE, "early").await;
    fixture.team.wait_for_status(OBJECT, "lastHandledReenableAt", "early").await;
    let (former, secret) = (fixture.id().await, fixture.secret().await);
    let shown = fixture.disable().await;
    assert_eq!(shown["status"]["webhookId"], former);
    assert_eq!(shown["status"]["state"], "Disabled");
    assert_conditions(&shown, &[("Delivering", "False"), ("Ready", "False"), ("Stalled", "True")]);
    fixture.team.wait_for_event("AutoDisabled").await;

    fixture.team.annotate(OBJECT, REENABLE, "now").await;
    let shown = fixture.team.wait_for_condition(OBJECT, "Ready").await;
    assert_eq!(shown["status"]["lastHandledReenableAt"], "now");
    assert_ne!(shown["status"]["webhookId"], former);
    assert_ne!(fixture.secret().await, secret);
    fixture.team.wait_for_event("WebhookReenabled").await;
    fixture.team.wait_for_event("SecretRotated").await;
    fixture.assert_delivers().await;
    assert_eq!(fixture.tokens_and_webhooks().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_no_event_before_the_secret_is_written() {
    let (fixture, other) = (WebhookFixture::start().await, WebhookFixture::start().await);
    // Else the operator may activate it again, whatever makes it reconcile the object.
    fixture.team.annotate(OBJECT, PAUSED, "true").await;
    fixture.team.wait_for_condition(OBJECT, "ReconciliationPaused").await;
    // As after the first half of a rotation.
    fixture.installation.deactivate_webhook(&fixture.id().await).await;
    fixture.deliver().await;
    other.deliver().await;
    other.receiver.wait_for_requests(1).await;
    assert_eq!(fixture.receiver.request_count(), 0);
    fixture.team.remove_annotation(OBJECT, PAUSED).await;
    assert!(fixture.receiver.wait_for_requests(1).await[0].is_signed_by(&fixture.secret().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_webhook_whose_row_is_deleted() {
    let fixture = WebhookFixture::start().await;
    let former = fixture.id().await;
    fixture.installation.delete_webhook_row(&former).await;
    let has_another_id = |shown: &Value| {
        let id = &shown["status"]["webhookId"];
        id.is_string() && *id != former
    };
    fixture.team.wait_until(OBJECT, "another id", has_another_id).await;
    fixture.assert_delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_the_webhook_without_the_grant_and_creates_another_with_it() {
    let fixture = WebhookFixture::start().await;
    let (former, secret) = (fixture.id().await, fixture.secret().await);
    fixture.team.revoke_grant().await;
    fixture.team.wait_for_reason(OBJECT, "Accepted", "TenantRefNotPermitted").await;
    assert_eq!(fixture.tokens_and_webhooks().await.1, 0);
    fixture.deliver().await;
    fixture.team.declare_tenant("").await;
    fixture.team.wait_for_condition(OBJECT, "Ready").await;
    assert_ne!(fixture.id().await, former);
    assert_ne!(fixture.secret().await, secret);
    fixture.assert_delivers().await;
    assert_eq!(fixture.receiver.request_count(), 1, "the mail without a webhook has no event");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_webhook_beyond_the_limit() {
    let fixture = WebhookFixture::start().await;
    fixture.team.apply("Webhook", "more", UNREACHABLE).await;
    let shown = fixture.team.wait_for_reason("webhook/more", "Accepted", "QuotaExceeded").await;
    let message = condition_message(&shown, "Accepted");
    let used = format!("1 of 1 webhooks of tenant {} are used.", fixture.team.tenant);
    assert!(message.starts_with(&used), "{message}");
    assert_eq!(fixture.tokens_and_webhooks().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_disabled_webhook_under_a_limit_that_was_lowered() {
    let fixture = WebhookFixture::start().await;
    let team = &fixture.team;
    team.apply_tenant("limits: {webhooks: 2}").await;
    team.wait_until_observed(&team.tenant_object()).await;
    team.apply_ready("Webhook", "more", UNREACHABLE).await;
    team.declare_tenant("limits: {webhooks: 1}").await;
    team.wait_for_condition(&team.tenant_object(), "QuotaExceeded").await;
    let former = fixture.id().await;
    fixture.disable().await;
    team.annotate(OBJECT, REENABLE, "now").await;
    team.wait_for_condition(OBJECT, "Ready").await;
    assert_ne!(fixture.id().await, former);
    assert_eq!(fixture.tokens_and_webhooks().await, (1, 2));
}
