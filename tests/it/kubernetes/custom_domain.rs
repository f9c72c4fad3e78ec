//! CustomDomain: verification, which fails after 72 hours, one object for each domain, and pauses.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::kubernetes::{
    Cluster, Installation, Team, assert_conditions, condition, condition_message, condition_reason,
    verification_records,
};

const OBJECT: &str = "customdomain/ours";
const PAUSED: &str = "tempmail.dev/paused";

#[tokio::test(flavor = "multi_thread")]
async fn verifies_a_domain_when_its_records_are_published() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await;
    let shown = team.wait_for_condition("customdomain/ours", "Accepted").await;
    assert_conditions(&shown, &[("Ready", "False")]);
    installation.verify_domain(&team, "customdomain/ours").await;
    let shown = team.get("customdomain/ours").await;
    assert_conditions(&shown, &[("Ready", "True")]);
    assert_eq!(shown["status"]["verification"]["state"], "Verified");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_second_object_for_a_domain_when_the_first_is_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("mail");
    let spec = format!("domain: {domain}");
    team.apply("CustomDomain", "first", &spec).await;
    let first = team.wait_for_condition("customdomain/first", "Accepted").await;
    team.apply("CustomDomain", "second", &spec).await;
    let second = team.wait_for_reason("customdomain/second", "Accepted", "DomainClaimed").await;
    assert_conditions(&second, &[("Stalled", "True")]);
    assert!(second["status"].get("domainId").is_none(), "{second}");
    let message = condition_message(&second, "Accepted");
    let holder = format!("The object {}/first manages the domain {domain} ", team.namespace.name());
    assert!(message.starts_with(&holder), "{message}");

    team.delete("customdomain/first").await;
    let second = team.wait_for_condition("customdomain/second", "Accepted").await;
    assert_ne!(second["status"]["domainId"], first["status"]["domainId"]);

    // An object that is created again at once gets another domain.
    team.delete("customdomain/second").await;
    team.apply("CustomDomain", "second", &spec).await;
    let recreated = team.wait_for_condition("customdomain/second", "Accepted").await;
    assert_ne!(recreated["status"]["domainId"], second["status"]["domainId"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopts_a_domain_of_the_tenant_unless_the_spec_says_never() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let (domain, pro) =
        (team.domain("mail"), installation.token(&team.tenant_id().await, TokenKind::Pro).await);
    let request = installation.request(Method::POST, "/pro/api/domains").bearer(&pro);
    let made = request.json(&json!({ "domain": domain })).send().await.expect(201);
    let spec = format!("domain: {domain}");
    team.apply("CustomDomain", "ours", &format!("{spec}, adoptionPolicy: Never")).await;
    team.wait_for_reason("customdomain/ours", "Accepted", "ExistsUnmanaged").await;
    team.apply("CustomDomain", "ours", &spec).await;
    let shown = team.wait_for_condition("customdomain/ours", "Accepted").await;
    assert_eq!(shown["status"]["domainId"], made["id"]);
    let event = team.wait_for_event_about("customdomain/ours", "Adopted").await;
    assert!(event.starts_with(&format!("Adopted the custom domain {domain}, ")), "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_reconcile_a_paused_object_until_it_is_resumed_or_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("mail");
    let metadata = format!("annotations: {{{PAUSED}: 'true'}}");
    let spec = format!("tenantRef: {{name: {}}}, domain: {domain}", team.tenant);
    team.try_apply_with("CustomDomain", "ours", &metadata, &spec).await.expect("the object is accepted");
    let shown = team.wait_for_condition(OBJECT, "ReconciliationPaused").await;
    assert_eq!(condition_reason(&shown, "Ready"), "Pending");
    assert!(shown["metadata"].get("finalizers").is_none(), "{shown}");
    assert!(!installation.domain_exists(&domain).await);

    team.remove_annotation(OBJECT, PAUSED).await;
    let shown = team.wait_for_condition(OBJECT, "Accepted").await;
    assert!(condition(&shown, "ReconciliationPaused").is_none(), "{shown}");
    assert!(installation.domain_exists(&domain).await);

    team.annotate(OBJECT, PAUSED, "true").await;
    let shown = team.wait_for_condition(OBJECT, "ReconciliationPaused").await;
    assert_conditions(&shown, &[("Accepted", "True")]);
    team.delete(OBJECT).await;
    assert!(!installation.domain_exists(&domain).await, "a paused object is finalized");
}

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
