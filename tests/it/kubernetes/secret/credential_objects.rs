//! One object of each kind that has a Secret.

use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{SharedInstallation, Team};
use tempmail_tests::wait::eventually;

use super::WEBHOOK;

/// The objects.
pub(super) const OBJECTS: [&str; 3] = ["apitoken/ci", "webhook/hook", "mailbox/box"];
/// Their Secrets.
pub(super) const SECRETS: [&str; 3] = ["ci-token", "hook-webhook", "box-mailbox"];

/// A token, a webhook and a mailbox of a team.
pub(super) struct CredentialObjects {
    pub(super) installation: &'static SharedInstallation,
    pub(super) team: Team,
}

impl CredentialObjects {
    /// Declares them, and waits until they are ready.
    pub(super) async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let domain = team.domain("sys");
        installation.tempmail(&format!("system-domain add {domain}")).await;
        team.apply("ApiToken", "ci", "type: Live").await;
        team.apply("Webhook", "hook", WEBHOOK).await;
        team.apply("Mailbox", "box", &format!("address: box@{domain}")).await;
        let credentials = Self { installation, team };
        credentials.wait_until_ready(&OBJECTS).await;
        credentials
    }

    pub(super) async fn wait_until_ready(&self, objects: &[&str]) {
        for object in objects {
            self.team.wait_for_condition(object, "Ready").await;
        }
    }

    pub(super) async fn reconcile_until_ready(&self, objects: &[&str]) {
        for object in objects {
            self.team.trigger_reconcile(object).await;
        }
        self.wait_until_ready(objects).await;
    }

    /// The token, the webhook's secret, and the mailbox's password.
    pub(super) async fn values(&self) -> [String; 3] {
        [
            self.team.secret_value(SECRETS[0], "token").await,
            self.team.secret_value(SECRETS[1], "secret").await,
            self.team.secret_value(SECRETS[2], "password").await,
        ]
    }

    pub(super) async fn sign_in_status(&self, password: &str) -> u16 {
        let address = format!("box@{}", self.team.domain("sys"));
        self.installation.sign_in(&address, password).await.status
    }

    /// Asserts that the token and the password are valid, and that they are in the Secrets.
    pub(super) async fn assert_valid(&self, values: &[String; 3]) {
        assert_eq!(self.values().await, *values);
        assert_eq!(self.installation.live_token_status(&values[0]).await, 200);
        assert_eq!(self.sign_in_status(&values[2]).await, 200);
    }

    /// Waits until the token and the password are valid, and asserts that they are in the Secrets.
    pub(super) async fn wait_until_valid(&self, values: &[String; 3]) {
        self.installation.wait_until_token_accepted(&values[0]).await;
        eventually("the password is accepted", || async {
            (self.sign_in_status(&values[2]).await == 200).then_some(())
        })
        .await;
        assert_eq!(self.values().await, *values);
    }

    /// Asserts that all values differ from former ones, of which none is valid.
    pub(super) async fn assert_rotated(&self, former: &[String; 3]) {
        let values = self.values().await;
        assert!(values.iter().zip(former).all(|(now, former)| now != former), "a rotation was requested");
        self.assert_valid(&values).await;
        self.installation.wait_until_token_rejected(&former[0]).await;
        assert_eq!(self.sign_in_status(&former[2]).await, 401);
    }

    /// What the database has of them.
    pub(super) async fn stored(&self) -> Vec<Vec<u8>> {
        sqlx::query_scalar(
            "SELECT k.hash FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE t.name = $1 AND k.revoked_at IS NULL
             UNION ALL
             SELECT w.secret FROM webhook w JOIN tenant t ON t.id = w.tenant WHERE t.name = $1
             UNION ALL
             SELECT b.password_hash::bytea FROM mailbox b JOIN tenant t ON t.id = b.tenant WHERE t.name = $1",
        )
        .bind(&self.team.tenant)
        .fetch_all(&self.installation.pool())
        .await
        .expect("the rows are there")
    }
}
