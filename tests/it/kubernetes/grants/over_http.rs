//! What was made over HTTP with the Pro token of a namespace.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{SharedInstallation, Team};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::eventually;

use super::{Credential, assert_refused_soon};

const PASSWORD: &str = "correct horse";

/// What a team made with its Pro token.
struct MadeOverHttp {
    installation: &'static SharedInstallation,
    team: Team,
    /// Token of the ApiToken `pro`.
    pro: String,
    /// A session of it, a token made with that, a live token made with that token, one that the live token minted, and a
    /// JWT of the mailbox.
    credentials: Vec<Credential>,
    /// Id of a mailbox.
    mailbox: String,
    /// Id of a webhook.
    webhook: String,
    /// A domain, as it was created.
    domain: Value,
}

/// The answer to a `POST` with a Pro token, which succeeds.
async fn post(installation: &SharedInstallation, pro: &str, path: &str, body: &Value) -> Value {
    installation.request(Method::POST, path).bearer(pro).json(body).send().await.expect(201)
}

fn text(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_else(|| panic!("no {field} in {answer}")).to_owned()
}

impl MadeOverHttp {
    async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        team.apply_ready("ApiToken", "pro", "type: Pro").await;
        let pro = team.secret_value("pro-token", "token").await;
        let session = installation.request(Method::POST, "/pro/api/session").json(&json!({"token": pro}));
        let session = text(&session.send().await.expect(200), "token");
        // By a session of the token, and by a token that the session made.
        let second = post(installation, &session, "/pro/api/tokens", &json!({"name": "second"})).await;
        let second = text(&second, "token");
        let live = json!({"name": "third", "kind": "live"});
        let live = text(&post(installation, &second, "/pro/api/tokens", &live).await, "token");
        let hook = json!({"url": "https://hooks.example.com/in", "events": ["email.received"]});
        let webhook = text(&post(installation, &second, "/pro/api/webhooks", &hook).await, "id");
        let name = team.domain("http");
        let domain = post(installation, &pro, "/pro/api/domains", &json!({"domain": name})).await;
        let address = format!("{}@{SYSTEM_DOMAIN}", team.tenant);
        let mailbox = installation.create_mailbox(Some(&pro), &address, PASSWORD).await.expect(201);
        installation.app.deliver(&address, "kept", "").await;
        let minted = installation.app.mint(&live, &address).await.token;
        let credentials = vec![
            Credential::Pro(session),
            Credential::Pro(second),
            Credential::Live(live),
            Credential::Minted(minted, address),
            Credential::Jwt(text(&mailbox, "token")),
        ];
        Self { installation, team, pro, credentials, mailbox: text(&mailbox, "id"), webhook, domain }
    }

    /// Asserts that nothing of it gives access any more, and that it is there.
    async fn assert_ended(&self) {
        let Self { installation, team, .. } = self;
        assert_refused_soon(installation, &self.credentials).await;
        let webhook = installation.webhook_status(&self.webhook).await;
        assert_eq!(webhook.as_deref(), Some("disabled"));
        assert!(installation.domain_exists(&text(&self.domain, "domain")).await);
        assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1, "its mail");
        let sign_in = installation.sign_in(&self.address(), PASSWORD).await;
        sign_in.assert_api_error(401, "invalid_credentials");
    }

    /// Publishes the DNS records of the domain.
    async fn publish_records(&self) {
        let (name, token) = (text(&self.domain, "domain"), text(&self.domain, "verify_token"));
        let dns = &self.installation.dns;
        dns.domain(&name, 1).await;
        dns.set_verified(&name, &token, &text(&self.domain["dns_records"][1], "value")).await;
    }

    fn address(&self) -> String {
        format!("{}@{SYSTEM_DOMAIN}", self.team.tenant)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_with_the_grant_and_stays_ended_when_the_grant_returns() {
    let made = MadeOverHttp::start().await;
    made.team.revoke_grant().await;
    made.assert_ended().await;
    made.team.declare_tenant("").await;
    made.team.wait_for_condition("apitoken/pro", "Ready").await;
    made.assert_ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_with_the_object_of_the_token_and_not_with_a_rotation() {
    let made = MadeOverHttp::start().await;
    let MadeOverHttp { installation, team, pro, .. } = &made;
    team.rotate("apitoken/pro", "1").await;
    let former = Credential::Pro(pro.clone());
    former.wait_until_refused(installation).await;
    // The session belongs to the token that was replaced.
    for credential in &made.credentials[1..] {
        assert_eq!(credential.status(installation).await, 200, "{credential:?}");
    }
    team.delete("apitoken/pro").await;
    made.assert_ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_what_other_tokens_of_the_tenant_made() {
    let made = MadeOverHttp::start().await;
    let MadeOverHttp { installation, team, .. } = &made;
    let other = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
    let live = json!({"name": "other", "kind": "live"});
    let live = Credential::Live(text(&post(installation, &other, "/pro/api/tokens", &live).await, "token"));
    team.revoke_grant().await;
    made.assert_ended().await;
    assert_eq!(live.status(installation).await, 200);
    assert_eq!(Credential::Pro(other).status(installation).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenant_makes_its_mailbox_and_domain_active_again() {
    let made = MadeOverHttp::start().await;
    let MadeOverHttp { installation, team, .. } = &made;
    let other = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
    team.revoke_grant().await;
    made.assert_ended().await;

    let path = format!("/pro/api/accounts/{}/reset-password", made.mailbox);
    let password = json!({"password": "another horse"});
    installation.request(Method::PUT, &path).bearer(&other).json(&password).send().await.expect(200);
    let signed_in = installation.sign_in(&made.address(), "another horse").await.expect(200);
    let jwt = Credential::Jwt(text(&signed_in, "token"));

    made.publish_records().await;
    let path = format!("/pro/api/domains/{}/verify", text(&made.domain, "id"));
    installation.request(Method::POST, &path).bearer(&other).send().await.expect(200);
    eventually("the domain is verified", || async {
        let list = installation.get_as_pro(&other, "/pro/api/domains").await.expect(200);
        (list["domains"][0]["verify_status"] == "verified").then_some(())
    })
    .await;
    // What the tenant took over is not what the namespace was granted.
    team.declare_tenant("").await;
    team.wait_for_condition("apitoken/pro", "Ready").await;
    team.revoke_grant().await;
    team.wait_for_reason("apitoken/pro", "Accepted", "TenantRefNotPermitted").await;
    assert_eq!(jwt.status(installation).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_was_set_with_a_token_ends_with_the_token() {
    let made = MadeOverHttp::start().await;
    let MadeOverHttp { installation, team, pro, .. } = &made;
    let other = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
    let address = format!("other-{}", made.address());
    let mailbox = installation.create_mailbox(Some(&other), &address, PASSWORD).await.expect(201);
    let path = format!("/pro/api/accounts/{}/reset-password", text(&mailbox, "id"));
    let password = json!({"password": "their horse"});
    installation.request(Method::PUT, &path).bearer(pro).json(&password).send().await.expect(200);
    let signed_in = installation.sign_in(&address, "their horse").await.expect(200);
    team.revoke_grant().await;
    assert_refused_soon(installation, &[Credential::Jwt(text(&signed_in, "token"))]).await;
}
