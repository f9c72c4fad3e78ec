//! Rows whose objects were deleted without the operator: their finalizers were removed by hand.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::kubernetes::{Cluster, Installation, Team};
use tempmail_tests::wait::eventually;

/// Waits until the object of this name is recorded as missing.
async fn wait_until_recorded_missing<C>(installation: &Installation<C>, name: &str) {
    eventually(&format!("{name} is recorded as missing"), || async {
        (installation.is_recorded_missing(name).await == Some(true)).then_some(())
    })
    .await;
}

/// Domains of a team, and another team, whose objects are deleted without the operator.
struct MissingObjects {
    installation: Installation<Cluster>,
    team: Team,
    /// The team whose Tenant is deleted.
    gone: Team,
    /// A token of that tenant.
    pro: String,
}

impl MissingObjects {
    /// Declares the objects.
    async fn start() -> Self {
        let installation = Installation::exclusive().await;
        let team = Team::new(&installation.cluster).await;
        let gone = Team::new(&installation.cluster).await;
        let policies = [("goes", "Delete"), ("stays", "Retain"), ("lives", "Delete"), ("later", "Delete")];
        for (name, policy) in policies {
            let spec = format!("domain: {}, deletionPolicy: {policy}", team.domain(name));
            team.apply("CustomDomain", name, &spec).await;
            team.wait_for_condition(&format!("customdomain/{name}"), "Accepted").await;
        }
        let pro = installation.token(&gone.tenant_id().await, TokenKind::Pro).await;
        Self { installation, team, gone, pro }
    }

    /// Names of the objects that are deleted first.
    fn deleted(&self) -> [&str; 3] {
        ["goes", "stays", &self.gone.tenant]
    }

    /// Deletes the objects while no operator runs, and waits until the next one has recorded that.
    async fn delete_objects(&mut self) {
        self.installation.app.stop_operator().await;
        self.team.delete_without_finalizers("customdomain/goes").await;
        self.team.delete_without_finalizers("customdomain/stays").await;
        self.gone.delete_without_finalizers(&self.gone.tenant_object()).await;
        // This one was missing, and is back.
        self.installation.record_missing("lives").await;
        self.installation.start_operator();
        for name in self.deleted() {
            wait_until_recorded_missing(&self.installation, name).await;
        }
        eventually("an object that is back is not missing", || async {
            (self.installation.is_recorded_missing("lives").await == Some(false)).then_some(())
        })
        .await;
    }

    /// Asserts that the rows are kept for 23 hours; another object is deleted at their end.
    async fn assert_kept_for_23_hours(&mut self) {
        self.installation.app.stop_operator().await;
        self.team.delete_without_finalizers("customdomain/later").await;
        self.installation.app.advance_hours(23);
        self.installation.start_operator();
        wait_until_recorded_missing(&self.installation, "later").await;
        for name in self.deleted() {
            assert_eq!(self.installation.is_recorded_missing(name).await, Some(true), "{name}");
        }
        self.installation.get_as_pro(&self.pro, "/pro/api/domains").await.expect(200);
    }

    /// Asserts that the rows are released after 25 hours, by their deletion policies.
    async fn assert_released_after_25_hours(&mut self) {
        self.installation.app.stop_operator().await;
        self.installation.app.advance_hours(2);
        self.installation.start_operator();
        for name in self.deleted() {
            eventually(&format!("{name} is released"), || async {
                self.installation.is_recorded_missing(name).await.is_none().then_some(())
            })
            .await;
        }
        for (label, manager) in [
            ("goes", None),
            ("stays", Some("api")),
            ("lives", Some("kubernetes")),
            ("later", Some("kubernetes")),
        ] {
            let domain = self.team.domain(label);
            assert_eq!(self.installation.domain_manager(&domain).await.as_deref(), manager, "{label}");
        }
        let domains = self.installation.request(Method::GET, "/pro/api/domains").bearer(&self.pro);
        domains.send().await.assert_api_error(403, "account_disabled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_row_of_a_missing_object_for_a_day_and_then_releases_it() {
    let mut missing = MissingObjects::start().await;
    missing.delete_objects().await;
    missing.assert_kept_for_23_hours().await;
    missing.assert_released_after_25_hours().await;
}

/// The objects of [`declare`].
const OBJECTS: [&str; 5] =
    ["customdomain/goes", "customdomain/stays", "apitoken/ci", "webhook/hook", "mailbox/box"];

/// Declares the objects of a team, before they are deleted and again afterwards.
async fn declare(team: &Team) {
    for (name, policy) in [("goes", "Delete"), ("stays", "Retain")] {
        let spec = format!("domain: {}, deletionPolicy: {policy}", team.domain(name));
        team.apply("CustomDomain", name, &spec).await;
    }
    team.apply("ApiToken", "ci", "type: Live").await;
    team.apply("Webhook", "hook", "url: 'https://hooks.example.com/in'").await;
    team.apply("Mailbox", "box", &format!("address: {}", address(team))).await;
}

fn address(team: &Team) -> String {
    format!("{}@inbox.localhost", team.tenant)
}

/// Waits until the objects of [`declare`] are accepted or ready.
async fn wait_until_accepted(team: &Team) {
    for object in ["customdomain/goes", "customdomain/stays"] {
        team.wait_for_condition(object, "Accepted").await;
    }
    for (object, secret) in
        [("apitoken/ci", "ci-token"), ("webhook/hook", "hook-webhook"), ("mailbox/box", "box-mailbox")]
    {
        wait_until_collected(team, object, secret).await;
        // The operator does not watch Secrets.
        team.trigger_reconcile(object).await;
        team.wait_for_condition(object, "Ready").await;
    }
}

/// Waits until the Secret of a predecessor of the object is collected.
async fn wait_until_collected(team: &Team, object: &str, secret: &str) {
    let uid = team.get(object).await["metadata"]["uid"].clone();
    eventually(&format!("no predecessor of {object} owns {secret}"), || async {
        let secret = team.get_opt(&format!("secret/{secret}")).await;
        secret.is_none_or(|secret| secret["metadata"]["ownerReferences"][0]["uid"] == uid).then_some(())
    })
    .await;
}

async fn id(team: &Team, object: &str, field: &str) -> Value {
    team.get(object).await["status"][field].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_created_again_replaces_its_predecessor_at_once() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    declare(&team).await;
    wait_until_accepted(&team).await;
    let goes = id(&team, "customdomain/goes", "domainId").await;
    let stays = id(&team, "customdomain/stays", "domainId").await;
    let hook = id(&team, "webhook/hook", "webhookId").await;
    let live = team.secret_value("ci-token", "token").await;
    let password = team.secret_value("box-mailbox", "password").await;
    installation.sign_in(&address(&team), &password).await.expect(200);

    installation.app.stop_operator().await;
    for object in OBJECTS {
        team.delete_without_finalizers(object).await;
    }
    declare(&team).await;
    installation.start_operator();
    wait_until_accepted(&team).await;
    assert_ne!(id(&team, "customdomain/goes", "domainId").await, goes, "its policy was Delete");
    assert_eq!(id(&team, "customdomain/stays", "domainId").await, stays, "its policy was Retain");
    assert_ne!(id(&team, "webhook/hook", "webhookId").await, hook);
    installation.wait_until_token_rejected(&live).await;
    assert_eq!(installation.sign_in(&address(&team), &password).await.status, 401);
    assert_eq!(installation.tokens_and_webhooks(&team).await, (1, 1), "the predecessors have no rows");
    assert_eq!(installation.recorded_objects(team.namespace.name()).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_name_or_namespace_waits_for_the_predecessor() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    let elsewhere = installation.cluster.namespace(&[]).await;
    let namespaces = [team.namespace.name(), elsewhere.name()];
    let both = json!([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}]);
    team.patch_tenant(json!({"allowedNamespaces": {"matchExpressions": both}})).await;
    for (name, label) in [("former", "renamed"), ("moved", "moved")] {
        team.apply("CustomDomain", name, &format!("domain: {}", team.domain(label))).await;
        team.wait_for_condition(&format!("customdomain/{name}"), "Accepted").await;
    }

    installation.app.stop_operator().await;
    team.delete_without_finalizers("customdomain/former").await;
    team.delete_without_finalizers("customdomain/moved").await;
    installation.start_operator();
    wait_until_recorded_missing(&installation, "former").await;
    team.apply("CustomDomain", "latter", &format!("domain: {}", team.domain("renamed"))).await;
    let elsewhere = installation.cluster.objects(elsewhere.name());
    let spec = format!("tenantRef: {{name: {}}}, domain: {}", team.tenant, team.domain("moved"));
    elsewhere.apply_object("CustomDomain", "moved", &spec).await;
    team.wait_for_reason("customdomain/latter", "Ready", "DomainClaimed").await;
    elsewhere.wait_for_reason("customdomain/moved", "Ready", "DomainClaimed").await;
    for label in ["renamed", "moved"] {
        let manager = installation.domain_manager(&team.domain(label)).await;
        assert_eq!(manager.as_deref(), Some("kubernetes"));
    }
}

/// Deletes the team's Tenant while no operator runs.
async fn delete_tenant(installation: &mut Installation<Cluster>, team: &Team) {
    installation.app.stop_operator().await;
    team.delete_without_finalizers(&team.tenant_object()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_created_again_inherits_nothing() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await;
    team.wait_for_condition("customdomain/ours", "Accepted").await;
    let first = team.tenant_id().await;
    let pro = installation.token(&first, TokenKind::Pro).await;

    delete_tenant(&mut installation, &team).await;
    team.apply_tenant("").await;
    installation.start_operator();
    team.wait_for_condition(&team.tenant_object(), "Ready").await;
    assert_ne!(team.tenant_id().await, first);
    installation.get_as_pro(&pro, "/pro/api/domains").await.assert_api_error(403, "account_disabled");
    team.wait_for_reason("customdomain/ours", "Ready", "TenantReplaced").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_created_again_keeps_what_it_adopts() {
    let mut installation = Installation::exclusive().await;
    let team = Team::with_spec(&installation.cluster, "deletionPolicy: Delete").await;
    let id = team.tenant_id().await;
    let pro = installation.token(&id, TokenKind::Pro).await;

    delete_tenant(&mut installation, &team).await;
    let metadata = format!("annotations: {{tempmail.dev/adopt-tenant: '{id}'}}");
    team.try_apply_with("Tenant", &team.tenant, &metadata, "").await.expect("the Tenant is accepted");
    installation.start_operator();
    team.wait_for_condition(&team.tenant_object(), "Ready").await;
    assert_eq!(team.tenant_id().await, id);
    installation.get_as_pro(&pro, "/pro/api/domains").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_domain_in_use_is_taken_over_by_the_object_that_is_created_again() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    let object = format!("systemdomain/{}", team.tenant);
    let spec = format!("domain: {}, default: true", team.domain("sys"));
    team.apply_object("SystemDomain", &team.tenant, &spec).await;
    team.wait_for_condition(&object, "Ready").await;
    let address = format!("address: {}@{}", team.tenant, team.domain("sys"));
    team.apply_ready("Mailbox", "box", &address).await;
    let (domain, mailbox) =
        (id(&team, &object, "domainId").await, id(&team, "mailbox/box", "mailboxId").await);

    installation.app.stop_operator().await;
    team.delete_without_finalizers(&object).await;
    team.apply_object("SystemDomain", &team.tenant, &spec).await;
    installation.start_operator();
    team.wait_for_condition(&object, "Ready").await;
    assert_eq!(id(&team, &object, "domainId").await, domain);
    assert_eq!(installation.is_recorded_missing(&team.tenant).await, Some(false), "one object is recorded");
    assert_eq!(id(&team, "mailbox/box", "mailboxId").await, mailbox);

    let other = format!("{}-b", team.tenant);
    installation.cluster.objects("default").apply_object("SystemDomain", &other, &spec).await;
    team.wait_for_reason(&format!("systemdomain/{other}"), "Ready", "DomainClaimed").await;
}
