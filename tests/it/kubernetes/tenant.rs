//! Tenant: limits, suspension, deletion, adoption and usage.

mod replaced;

use jiff::{SignedDuration, Timestamp, Unit};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::id::PLATFORM_TENANT;
use tempmail_model::token::TokenKind;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{
    Objects, SharedInstallation, TEAM_OBJECTS, Team, assert_conditions, condition, condition_message,
    condition_reason, condition_status, unique_name,
};
use tempmail_tests::wait::eventually;
use uuid::Uuid;

const ADOPT: &str = "tempmail.dev/adopt-tenant";

/// The names of the domains that a token's tenant has.
async fn domains(installation: &SharedInstallation, pro: &str) -> Vec<String> {
    let answer = installation.get_as_pro(pro, "/pro/api/domains").await.expect(200);
    let name = |domain: &Value| domain["domain"].as_str().unwrap().to_owned();
    answer["domains"].as_array().unwrap().iter().map(name).collect()
}

/// Declares a Tenant that adopts the tenant of an id.
async fn adopt(objects: &Objects, name: &str, id: &str, spec: &str) {
    let metadata = format!("annotations: {{{ADOPT}: '{id}'}}");
    objects.try_apply_with("Tenant", name, &metadata, spec).await.expect("the Tenant is accepted");
}

/// A verified domain `ours` of a team.
struct TeamFixture {
    installation: &'static SharedInstallation,
    team: Team,
    domain: String,
}

impl TeamFixture {
    /// The spec of the tenant has these further fields.
    async fn start(spec: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::with_spec(installation.cluster, spec).await;
        let domain = installation.verified_domain(&team, "ours", "mail").await;
        Self { installation, team, domain }
    }

    fn address(&self) -> String {
        format!("a@{}", self.domain)
    }

    fn inbox(&self) -> String {
        format!("/v1/inbox/{}", self.address())
    }

    /// A new token of the tenant.
    async fn token(&self, kind: TokenKind) -> String {
        self.installation.token(&self.team.tenant_id().await, kind).await
    }

    async fn get_live(&self, path: &str, live: &str) -> tempmail_tests::Response {
        self.installation.request(Method::GET, path).live(live).send().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_created_again_inherits_nothing_unless_it_adopts() {
    let fixture = TeamFixture::start("").await;
    let TeamFixture { installation, team, .. } = &fixture;
    installation.wait_for_mail_reply(&fixture.address(), 250).await;
    let (first, tenant) = (team.tenant_id().await, team.tenant_object());
    let live_of_first = fixture.token(TokenKind::Live).await;

    team.delete(&tenant).await;
    fixture.get_live(&fixture.inbox(), &live_of_first).await.assert_v1_error(403, "account_disabled");
    team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    installation.wait_for_mail_reply(&fixture.address(), 550).await;

    team.declare_tenant("").await;
    assert_ne!(team.tenant_id().await, first);
    team.wait_for_reason("customdomain/ours", "Ready", "TenantReplaced").await;
    installation.wait_for_mail_reply(&fixture.address(), 550).await;
    assert!(domains(installation, &fixture.token(TokenKind::Pro).await).await.is_empty());
    let live = fixture.token(TokenKind::Live).await;
    assert_eq!(fixture.get_live(&fixture.inbox(), &live).await.status, 404);

    team.delete(&tenant).await;
    adopt(team, &team.tenant, &first, &format!("allowedNamespaces: {}", team.selector())).await;
    team.wait_for_condition(&tenant, "Ready").await;
    assert_eq!(team.tenant_id().await, first);
    team.wait_for_condition("customdomain/ours", "Ready").await;
    let emails = fixture.get_live(&fixture.inbox(), &live_of_first).await.expect(200);
    assert!(!emails["emails"].as_array().unwrap().is_empty(), "the adopted tenant keeps its mail");
    installation.wait_for_mail_reply(&fixture.address(), 250).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adopts_only_an_existing_tenant_without_an_object() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let removed = installation.insert_removed_tenant(&unique_name("tenant")).await;
    let refused = [
        (team.tenant_id().await, "TenantNotAdoptable"),
        (PLATFORM_TENANT.to_string(), "TenantNotAdoptable"),
        (Uuid::new_v4().to_string(), "TenantNotAdoptable"),
        (removed.to_string(), "TenantNotAdoptable"),
        ("acme".to_owned(), "InvalidSpec"),
        (String::new(), "InvalidSpec"),
    ];
    for (id, reason) in refused {
        let name = unique_name("tenant");
        adopt(&team, &name, &id, "").await;
        let shown = team.wait_for_reason(&format!("tenant/{name}"), "Ready", reason).await;
        assert_conditions(&shown, &[("Stalled", "True")]);
        assert!(shown["status"].get("tenantId").is_none(), "{id}");
        assert!(!installation.tenant_exists(&name).await, "{id} was adopted");
    }
    let unmanaged = installation.unmanaged_tenant(&unique_name("tenant")).await;
    let name = unique_name("tenant");
    adopt(&team, &name, &unmanaged.id.to_string(), "limits: {customDomains: 3}").await;
    let shown = team.wait_for_condition(&format!("tenant/{name}"), "Ready").await;
    assert_eq!(shown["status"]["tenantId"], unmanaged.id.to_string());
    let event = team.wait_for_event_about(&format!("tenant/{name}"), "Adopted").await;
    assert!(event.starts_with(&format!("Adopted the tenant {}, ", unmanaged.id)), "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_in_use_ignores_the_adoption_of_another_and_says_so() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply_ready("ApiToken", "ci", "type: Live").await;
    let (tenant, ours) = (team.tenant_object(), team.tenant_id().await);
    let unmanaged = installation.unmanaged_tenant(&unique_name("tenant")).await.id.to_string();
    let message = condition_message(&team.get(&tenant).await, "Ready").to_owned();
    let adopt_other = async |other: &str| {
        team.annotate(&tenant, ADOPT, other).await;
        // The message names the tenant that the object keeps.
        let is_ignored = |shown: &Value| condition_message(shown, "Ready").contains(&ours);
        let shown = team.wait_until(&tenant, "a message that names its tenant", is_ignored).await;
        assert_eq!(condition_status(&shown, "Ready"), "True");
    };
    let is_as_before = |shown: &Value| condition_message(shown, "Ready") == message;
    adopt_other(&unmanaged).await;
    assert_eq!(team.tenant_id().await, ours);
    team.annotate(&tenant, ADOPT, &ours).await;
    team.wait_until(&tenant, "its first message", is_as_before).await;
    adopt_other(&unmanaged).await;
    team.remove_annotation(&tenant, ADOPT).await;
    team.wait_until(&tenant, "its first message", is_as_before).await;

    // One that is not in use gives way only to a tenant that can be adopted.
    team.delete("apitoken/ci").await;
    adopt_other(&Uuid::new_v4().to_string()).await;
    assert_eq!(team.tenant_id().await, ours);
    team.annotate(&tenant, ADOPT, &unmanaged).await;
    team.wait_for_status(&tenant, "tenantId", unmanaged.as_str()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_touch_an_existing_tenant_of_the_same_name() {
    let installation = Installation::shared().await;
    let objects = installation.cluster.objects("default");
    let name = unique_name("tenant");
    let existing = installation.unmanaged_tenant(&name).await;
    objects.apply_object("Tenant", &name, "suspended: true").await;
    objects.wait_for_reason(&format!("tenant/{name}"), "Ready", "TenantNameTaken").await;
    assert!(domains(installation, &existing.pro).await.is_empty(), "it is not suspended");
    objects.delete(&format!("tenant/{name}")).await;
    assert!(domains(installation, &existing.pro).await.is_empty(), "it is not released");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_everything_of_a_tenant_whose_policy_is_delete() {
    let fixture = TeamFixture::start("deletionPolicy: Delete").await;
    let TeamFixture { installation, team, domain } = &fixture;
    let first = team.tenant_id().await;
    let live = fixture.token(TokenKind::Live).await;
    team.delete(&team.tenant_object()).await;
    assert_eq!(fixture.get_live(&fixture.inbox(), &live).await.status, 401);
    installation.wait_for_mail_reply(&fixture.address(), 550).await;
    team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    assert!(!installation.domain_exists(domain).await);

    // The former tenant has nothing, so the domain of the object is the next tenant's.
    team.declare_tenant("").await;
    team.wait_for_condition("customdomain/ours", "Accepted").await;
    installation.verify_domain(team, "customdomain/ours").await;
    assert_ne!(team.tenant_id().await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_has_no_service_until_it_is_resumed() {
    let fixture = TeamFixture::start("").await;
    let TeamFixture { installation, team, .. } = &fixture;
    let pro = fixture.token(TokenKind::Pro).await;
    for (suspended, http, smtp) in [(true, 403, 550), (false, 200, 250)] {
        team.patch_tenant(json!({"suspended": suspended})).await;
        eventually("HTTP follows the spec", || async {
            (installation.get_as_pro(&pro, "/pro/api/domains").await.status == http).then_some(())
        })
        .await;
        installation.wait_for_mail_reply(&fixture.address(), smtp).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_mail_for_the_hours_of_the_spec() {
    let fixture = TeamFixture::start("retentionHours: 6").await;
    let live = fixture.token(TokenKind::Live).await;
    fixture.installation.wait_for_mail_reply(&fixture.address(), 250).await;
    let listed = fixture.get_live(&fixture.inbox(), &live).await.expect(200);
    let path = format!("/v1/email/{}", listed["emails"][0]["id"].as_str().unwrap());
    let email = fixture.get_live(&path, &live).await.expect(200);
    let time = |key: &str| email[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    let kept = time("expires_at").duration_since(time("created_at"));
    assert_eq!(kept.round(Unit::Minute).unwrap(), SignedDuration::from_hours(6), "{email}");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_limits_and_keeps_what_exceeds_a_lowered_one() {
    let installation = Installation::shared().await;
    let team = Team::with_spec(installation.cluster, "limits: {customDomains: 1}").await;
    let pro = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await;
    team.wait_for_condition("customdomain/ours", "Accepted").await;
    team.apply("CustomDomain", "more", &format!("domain: {}", team.domain("more"))).await;
    team.wait_for_reason("customdomain/more", "Accepted", "QuotaExceeded").await;
    let add = json!({"domain": team.domain("http")});
    let refused = installation.request(Method::POST, "/pro/api/domains").bearer(&pro).json(&add).send().await;
    refused.assert_api_error(403, "domain_limit_reached");
    team.patch_tenant(json!({"limits": {"customDomains": 2}})).await;
    team.wait_for_condition("customdomain/more", "Accepted").await;

    team.patch_tenant(json!({"limits": {"customDomains": 1}})).await;
    let shown = team.wait_for_condition(&team.tenant_object(), "QuotaExceeded").await;
    assert_conditions(&shown, &[("Ready", "True")]);
    team.patch_tenant(json!({"limits": {"customDomains": 2}})).await;
    let is_within_limits = |shown: &Value| condition(shown, "QuotaExceeded").is_none();
    team.wait_until(&team.tenant_object(), "no condition QuotaExceeded", is_within_limits).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_its_usage_when_objects_are_created_and_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let wait_for_usage = async |domains: i64, tokens: i64| {
        let is_shown = |shown: &Value| {
            let usage = &shown["status"]["usage"];
            usage["customDomains"] == domains && usage["tokens"] == tokens
        };
        team.wait_until(&team.tenant_object(), "its usage", is_shown).await;
    };
    wait_for_usage(0, 0).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await;
    team.apply("ApiToken", "ours", "type: Pro").await;
    wait_for_usage(1, 1).await;
    team.delete("customdomain/ours").await;
    wait_for_usage(0, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_suspended_tenant_are_not_ready_until_it_is_resumed() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.declare_objects(&team.domain("mail")).await;
    installation.verify_domain(&team, "customdomain/mail").await;
    for object in TEAM_OBJECTS {
        team.wait_for_condition(object, "Ready").await;
    }
    team.patch_tenant(json!({"suspended": true})).await;
    for object in TEAM_OBJECTS {
        let shown = team.wait_for_reason(object, "Ready", "TenantSuspended").await;
        assert_conditions(&shown, &[("Ready", "False"), ("Accepted", "True"), ("Stalled", "True")]);
        let message = condition_message(&shown, "Ready");
        assert!(message.starts_with(&format!("The Tenant {} is suspended: ", team.tenant)), "{message}");
    }
    let domain = team.get("customdomain/mail").await;
    assert_conditions(&domain, &[("Verified", "True")]);
    let webhook = team.get("webhook/hook").await;
    assert_conditions(&webhook, &[("Delivering", "False")]);
    assert_eq!(condition_reason(&webhook, "Delivering"), "TenantSuspended");
    team.wait_for_event("TenantSuspended").await;

    team.patch_tenant(json!({"suspended": false})).await;
    for object in TEAM_OBJECTS {
        let shown = team.wait_for_condition(object, "Ready").await;
        assert!(condition(&shown, "Stalled").is_none(), "{shown:#}");
    }
    assert_conditions(&team.get("webhook/hook").await, &[("Delivering", "True")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_says_so_and_is_ready() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let tenant = team.tenant_object();
    assert!(condition(&team.get(&tenant).await, "Suspended").is_none());
    team.patch_tenant(json!({"suspended": true})).await;
    let shown = team.wait_for_reason(&tenant, "Suspended", "TenantSuspended").await;
    assert_conditions(&shown, &[("Ready", "True"), ("Suspended", "True")]);
    team.patch_tenant(json!({"suspended": false})).await;
    let is_resumed = |shown: &Value| condition(shown, "Suspended").is_none();
    team.wait_until(&tenant, "no condition Suspended", is_resumed).await;
}
