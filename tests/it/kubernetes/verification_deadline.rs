//! The 72 hours of a verification are stored: they pass whether or not an operator runs.

use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::kubernetes::{
    Cluster, Installation, Team, assert_conditions, condition, condition_reason, verification_records,
};

const OBJECT: &str = "customdomain/ours";

/// A pending domain, whose operator the test restarts.
struct PendingDomain {
    installation: Installation<Cluster>,
    team: Team,
    domain: String,
    pro: String,
    /// The object, pending.
    shown: Value,
}

impl PendingDomain {
    async fn start() -> Self {
        let installation = Installation::exclusive().await;
        let team = Team::new(&installation.cluster).await;
        let domain = team.domain("mail");
        installation.dns.domain(&domain, 1).await;
        team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await;
        let shown = team.wait_for_reason(OBJECT, "Verified", "TxtRecordMissing").await;
        let pro = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
        Self { installation, team, domain, pro, shown }
    }

    /// Requests a check of the records, and returns the object when it is done.
    async fn check(&self, value: &str) -> Value {
        self.team.annotate(OBJECT, "tempmail.dev/verify-requested-at", value).await;
        self.team.wait_for_status(OBJECT, "lastHandledVerifyAt", value).await
    }

    async fn publish_records(&self) {
        let (token, mx_host) = verification_records(&self.shown);
        self.installation.dns.set_verified(&self.domain, &token, &mx_host).await;
    }

    /// The domain as its tenant sees it over HTTP.
    async fn over_http(&self) -> Value {
        let list = self.installation.get_as_pro(&self.pro, "/pro/api/domains").await.expect(200);
        list["domains"][0].clone()
    }

    async fn mail_reply(&self) -> u16 {
        self.installation.send_mail_to(&format!("ada@{}", self.domain)).await
    }

    /// Restarts the operator thrice within 72 hours, and lets them end.
    async fn pass_72_hours(&mut self) {
        for restart in 1..=3 {
            self.installation.app.advance_hours(23);
            self.installation.start_operator();
            let shown = self.check(&format!("check-{restart}")).await;
            assert_eq!(shown["status"]["verification"]["state"], "Pending");
            let deadline = |shown: &Value| shown["status"]["verification"]["deadline"].clone();
            assert_eq!(deadline(&shown), deadline(&self.shown), "a restart does not move the deadline");
        }
        self.installation.app.advance_hours(4);
    }

    async fn assert_failed(&self) {
        let failed = self.team.wait_for_condition(OBJECT, "Stalled").await;
        assert_eq!(condition_reason(&failed, "Verified"), "VerificationTimedOut");
        assert_conditions(&failed, &[("Ready", "False")]);
        assert_eq!(failed["status"]["verification"]["state"], "Failed");
        self.team.wait_for_event("VerificationTimedOut").await;
        assert_eq!(self.over_http().await["verify_status"], "failed");
        assert_eq!(self.mail_reply().await, 550);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_records_fails_after_72_hours_and_starts_over_on_request() {
    let mut pending = PendingDomain::start().await;
    pending.pass_72_hours().await;
    pending.assert_failed().await;

    let restarted = pending.check("again").await;
    assert_eq!(restarted["status"]["verification"]["state"], "Pending");
    assert!(condition(&restarted, "Stalled").is_none(), "{restarted:#}");
    pending.publish_records().await;
    pending.team.wait_for_condition(OBJECT, "Verified").await;
    assert_eq!(pending.over_http().await["verify_status"], "verified");
    assert_eq!(pending.mail_reply().await, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_verification_that_happened_while_no_operator_ran() {
    let mut pending = PendingDomain::start().await;
    pending.installation.app.stop_operator().await;
    pending.publish_records().await;
    let record = pending.over_http().await;
    let path = format!("/pro/api/domains/{}/verify", record["id"].as_str().expect("an id"));
    pending.installation.request(Method::POST, &path).bearer(&pending.pro).send().await.expect(200);
    assert_eq!(pending.over_http().await["verify_status"], "verified");
    let before = pending.team.get(OBJECT).await;
    assert_eq!(before["status"]["verification"]["state"], "Pending", "no operator runs");

    pending.installation.start_operator();
    let shown = pending.team.wait_for_condition(OBJECT, "Verified").await;
    assert_eq!(shown["status"]["verification"]["state"], "Verified");
}
