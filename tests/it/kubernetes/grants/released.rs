//! Objects that are deleted without a grant, and what the deletion leaves to the tenant.

use tempmail_model::token::TokenKind;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{SharedInstallation, Team};

use super::{Credential, address, assert_refused_soon, declare_mailbox};

/// A verified domain and a mailbox with a mail, both with this deletion policy.
struct DeclaredData {
    installation: &'static SharedInstallation,
    team: Team,
    domain: String,
    jwt: Credential,
}

impl DeclaredData {
    async fn start(policy: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let domain = team.domain("mail");
        let spec = format!("domain: {domain}, deletionPolicy: {policy}");
        team.apply("CustomDomain", "mail", &spec).await;
        installation.verify_domain(&team, "customdomain/mail").await;
        let jwt = declare_mailbox(installation, &team, &format!("deletionPolicy: {policy}")).await;
        installation.app.deliver(&address(&team), "kept", "").await;
        Self { installation, team, domain, jwt }
    }

    async fn delete_objects(&self) {
        self.team.delete("mailbox/box").await;
        self.team.delete("customdomain/mail").await;
    }

    /// Asserts that the tenant has the domain and the mail, and that neither gives access.
    async fn assert_left_inactive(&self) {
        let Self { installation, team, domain, jwt } = self;
        assert_eq!(installation.domain_manager(domain).await.as_deref(), Some("api"));
        installation.wait_for_mail_reply(&format!("a@{domain}"), 550).await;
        assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1);
        assert!([401, 403].contains(&jwt.status(installation).await));
        let pro = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
        let accounts = installation.get_as_pro(&pro, "/pro/api/accounts").await;
        if accounts.status == 200 {
            assert_eq!(accounts.json()["accounts"][0]["address"], address(team));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_everything_inactive_whatever_the_deletion_policy_says() {
    for policy in ["Delete", "Retain"] {
        let data = DeclaredData::start(policy).await;
        data.team.revoke_grant().await;
        assert_refused_soon(data.installation, std::slice::from_ref(&data.jwt)).await;
        data.delete_objects().await;
        data.assert_left_inactive().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_everything_of_a_suspended_tenant() {
    let data = DeclaredData::start("Delete").await;
    data.team.declare_tenant("suspended: true").await;
    data.delete_objects().await;
    data.team.declare_tenant("suspended: false").await;
    data.assert_left_inactive().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_retained_with_the_grant_ends_with_the_grant() {
    let data = DeclaredData::start("Retain").await;
    data.delete_objects().await;
    assert_eq!(data.jwt.status(data.installation).await, 200, "it is the tenant's, and active");
    data.installation.wait_for_mail_reply(&format!("a@{}", data.domain), 250).await;
    data.team.revoke_grant().await;
    assert_refused_soon(data.installation, std::slice::from_ref(&data.jwt)).await;
    data.installation.wait_for_mail_reply(&format!("a@{}", data.domain), 550).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_adopts_what_was_left_inactive() {
    let data = DeclaredData::start("Delete").await;
    let DeclaredData { installation, team, domain, jwt } = &data;
    team.revoke_grant().await;
    assert_refused_soon(installation, std::slice::from_ref(jwt)).await;
    data.delete_objects().await;
    team.declare_tenant("").await;
    team.apply("CustomDomain", "again", &format!("domain: {domain}")).await;
    team.wait_for_condition("customdomain/again", "Verified").await;
    let spec = format!("address: {}, adoptionPolicy: IfUnowned", address(team));
    team.apply_ready("Mailbox", "again", &spec).await;
    let password = team.secret_value("again-mailbox", "password").await;
    installation.sign_in(&address(team), &password).await.expect(200);
    assert_eq!(jwt.status(installation).await, 401);
    assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1);
}
