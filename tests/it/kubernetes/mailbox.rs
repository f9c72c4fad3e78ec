//! Mailbox: passwords, addresses, deletion and rights.

mod address;
mod rights;
mod secret;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::Installation;
use tempmail_tests::http::Response;
use tempmail_tests::kubernetes::{SharedInstallation, Team};

/// A team and a system domain of the test's own.
struct MailboxFixture {
    installation: &'static SharedInstallation,
    team: Team,
    domain: String,
}

impl MailboxFixture {
    async fn start() -> Self {
        Self::with_tenant("").await
    }

    /// The spec of the tenant has these further fields.
    async fn with_tenant(spec: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::with_spec(installation.cluster, spec).await;
        let domain = team.domain("sys");
        installation.tempmail(&format!("system-domain add {domain}")).await;
        Self { installation, team, domain }
    }

    fn address(&self, local_part: &str) -> String {
        format!("{local_part}@{}", self.domain)
    }

    /// Declares a mailbox of this local part and name, with more fields of its spec.
    async fn declare(&self, name: &str, more: &str) {
        self.team.apply("Mailbox", name, &format!("address: {}, {more}", self.address(name))).await;
    }

    /// Declares a mailbox, and waits until it is ready.
    async fn declare_ready(&self, name: &str, more: &str) -> Value {
        self.declare(name, more).await;
        self.wait_until_ready(name).await
    }

    async fn wait_until_ready(&self, name: &str) -> Value {
        self.team.wait_for_condition(&format!("mailbox/{name}"), "Ready").await
    }

    /// Waits until it is not ready, for this reason.
    async fn wait_for_reason(&self, name: &str, reason: &str) -> Value {
        self.team.wait_for_reason(&format!("mailbox/{name}"), "Ready", reason).await
    }

    async fn trigger_reconcile(&self, name: &str) {
        self.team.trigger_reconcile(&format!("mailbox/{name}")).await;
    }

    /// The password in the mailbox's Secret.
    async fn password(&self, name: &str) -> String {
        self.team.secret_value(&format!("{name}-mailbox"), "password").await
    }

    /// The answer to a sign-in with this password.
    async fn try_sign_in(&self, name: &str, password: &str) -> Response {
        self.installation.sign_in(&self.address(name), password).await
    }

    /// Signs in with the password of the Secret; a JWT.
    async fn sign_in(&self, name: &str) -> String {
        let signed_in = self.try_sign_in(name, &self.password(name).await).await.expect(200);
        signed_in["token"].as_str().expect("a JWT").to_owned()
    }

    /// A mailbox `box` that is ready; its password and a JWT.
    async fn mailbox(&self, more: &str) -> (String, String) {
        self.declare_ready("box", more).await;
        (self.password("box").await, self.sign_in("box").await)
    }

    async fn messages(&self, jwt: &str) -> Response {
        self.installation.request(Method::GET, "/api/messages").bearer(jwt).send().await
    }

    /// Asserts that neither this password nor this JWT of `box` is accepted.
    async fn assert_rejected(&self, password: &str, jwt: &str) {
        self.messages(jwt).await.assert_api_error(401, "invalid_token");
        self.try_sign_in("box", password).await.assert_api_error(401, "invalid_credentials");
    }

    async fn deliver(&self, name: &str, subject: &str) {
        self.installation.app.deliver(&self.address(name), subject, "").await;
    }

    /// Asserts that its only mail has this subject.
    async fn assert_only_mail(&self, jwt: &str, subject: &str) {
        let messages = self.messages(jwt).await.expect(200)["messages"].clone();
        let subjects: Vec<&Value> =
            messages.as_array().expect("a list").iter().map(|message| &message["subject"]).collect();
        assert_eq!(subjects, [subject]);
    }

    /// Creates a mailbox over HTTP: a free one, or with a Pro token its tenant's.
    async fn create_over_http(&self, name: &str, pro: Option<&str>) -> Response {
        self.installation.create_mailbox(pro, &self.address(name), "correct horse").await
    }

    /// A Pro token of a team's tenant.
    async fn pro_token(&self, team: &Team) -> String {
        self.installation.tempmail(&format!("token create {} --kind pro", team.tenant)).await
    }

    /// The mailboxes of the tenant over HTTP.
    async fn accounts(&self) -> Value {
        let pro = self.pro_token(&self.team).await;
        self.installation.get_as_pro(&pro, "/pro/api/accounts").await.expect(200)["accounts"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_the_credentials_of_a_mailbox_to_its_secret() {
    let fixture = MailboxFixture::start().await;
    let shown = fixture.declare_ready("box", "").await;
    assert_eq!(shown["status"]["secretName"], "box-mailbox");
    assert_eq!(fixture.team.secret_value("box-mailbox", "address").await, fixture.address("box"));
    assert_eq!(fixture.password("box").await.len(), 32);
    let jwt = fixture.sign_in("box").await;
    fixture.deliver("box", "hello").await;
    fixture.assert_only_mail(&jwt, "hello").await;
    let me = fixture.installation.request(Method::GET, "/api/me").bearer(&jwt).send().await.expect(200);
    assert_eq!((&me["id"], &me["role"]), (&shown["status"]["mailboxId"], &json!("pro")));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_does_not_change_a_declared_mailbox() {
    let fixture = MailboxFixture::start().await;
    let shown = fixture.declare_ready("box", "").await;
    let (jwt, pro) = (fixture.sign_in("box").await, fixture.pro_token(&fixture.team).await);
    let path = format!("/pro/api/accounts/{}", shown["status"]["mailboxId"].as_str().expect("an id"));
    let request = |method, path: &str, token: &str| fixture.installation.request(method, path).bearer(token);
    let password = json!({"password": "correct horse"});
    let reset = request(Method::PUT, &format!("{path}/reset-password"), &pro).json(&password).send().await;
    reset.assert_api_error(409, "managed_by_kubernetes");
    request(Method::DELETE, &path, &pro).send().await.assert_api_error(409, "managed_by_kubernetes");
    request(Method::DELETE, "/api/me", &jwt).send().await.assert_api_error(409, "managed_by_kubernetes");
    fixture.messages(&jwt).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_the_mail_and_reserves_the_address_for_the_tenant() {
    let fixture = MailboxFixture::start().await;
    let (password, jwt) = fixture.mailbox("").await;
    fixture.deliver("box", "hello").await;
    fixture.team.delete("mailbox/box").await;
    fixture.assert_rejected(&password, &jwt).await;
    fixture.create_over_http("box", None).await.assert_api_error(409, "address_taken");
    // The tenant may declare the address again, without the mail.
    let (_, jwt) = fixture.mailbox("").await;
    assert_eq!(fixture.messages(&jwt).await.expect(200)["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_mailbox_can_be_changed_over_http() {
    let fixture = MailboxFixture::start().await;
    let (password, jwt) = fixture.mailbox("deletionPolicy: Retain").await;
    let shown = fixture.team.get("mailbox/box").await;
    fixture.team.delete("mailbox/box").await;
    fixture.messages(&jwt).await.expect(200);
    fixture.try_sign_in("box", &password).await.expect(200);
    let pro = fixture.pro_token(&fixture.team).await;
    let path = format!("/pro/api/accounts/{}", shown["status"]["mailboxId"].as_str().expect("an id"));
    let deleted = fixture.installation.request(Method::DELETE, &path).bearer(&pro).send().await;
    assert_eq!(deleted.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_objects_that_have_no_mailbox() {
    let fixture = MailboxFixture::start().await;
    let waiting = format!("address: a@{}", fixture.team.domain("never"));
    fixture.team.apply("Mailbox", "waits", &waiting).await;
    fixture.wait_for_reason("waits", "DomainNotServed").await;
    fixture.team.delete("mailbox/waits").await;
    fixture.declare("postmaster", "").await;
    fixture.wait_for_reason("postmaster", "InvalidSpec").await;
    fixture.team.delete("mailbox/postmaster").await;
    // This one is deleted before the operator reconciles it.
    fixture.declare("early", "").await;
    fixture.team.delete("mailbox/early").await;
    fixture.try_sign_in("early", "correct horse").await.assert_api_error(401, "invalid_credentials");
}
