//! References to a Tenant: accepted from the namespaces that it allows, for as long as it allows them.

use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{
    ApiProxy, Cluster, Objects, SharedInstallation, Team, assert_conditions, condition_reason, unique_name,
};
use tempmail_tests::wait::eventually;

/// Declares a CustomDomain of a tenant; its domain has its name.
async fn declare_domain(objects: &Objects, name: &str, tenant: &str) {
    let spec = format!("tenantRef: {{name: {tenant}}}, domain: {name}.{tenant}.example");
    objects.apply_object("CustomDomain", name, &spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_reveal_whether_a_tenant_exists_that_allows_no_reference() {
    let installation = Installation::shared().await;
    let namespace = installation.cluster.namespace(&[("team", "shop")]).await;
    let objects = installation.cluster.objects(namespace.name());
    let specs = [
        None,
        Some(""),
        Some("allowedNamespaces: {}"),
        Some("allowedNamespaces: {matchLabels: {}}"),
        Some("allowedNamespaces: {matchExpressions: []}"),
        Some("allowedNamespaces: {matchLabels: {team: ship}}"),
    ];
    let mut statuses = Vec::new();
    for spec in specs {
        let tenant = unique_name("tenant");
        if let Some(spec) = spec {
            objects.apply_object("Tenant", &tenant, spec).await;
            objects.wait_for_condition(&format!("tenant/{tenant}"), "Ready").await;
        }
        declare_domain(&objects, &tenant, &tenant).await;
        let shown = objects.wait_for_condition(&format!("customdomain/{tenant}"), "Accepted=False").await;
        assert_eq!(condition_reason(&shown, "Accepted"), "TenantRefNotPermitted");
        statuses.push((spec, anonymous(&shown["status"], &tenant)));
    }
    for (spec, status) in &statuses {
        assert_eq!(*status, statuses[0].1, "{spec:?} shows that the Tenant exists");
    }
}

/// A status without the times of its conditions, and with another name of the Tenant.
fn anonymous(status: &Value, tenant: &str) -> Value {
    let mut status: Value = status.to_string().replace(tenant, "acme").parse().expect("it is JSON still");
    for condition in status["conditions"].as_array_mut().expect("conditions") {
        condition.as_object_mut().expect("a condition is an object").remove("lastTransitionTime");
    }
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn evaluates_selectors_as_kubernetes_does() {
    let installation = Installation::shared().await;
    let (gold, plain) = tokio::join!(
        installation.cluster.namespace(&[("tier", "gold")]),
        installation.cluster.namespace(&[]),
    );
    let cases = [
        ("matchLabels: {tier: gold}", true, false),
        ("matchExpressions: [{key: tier, operator: In, values: [gold, silver]}]", true, false),
        ("matchExpressions: [{key: tier, operator: Exists}]", true, false),
        ("matchExpressions: [{key: tier, operator: NotIn, values: [gold]}]", false, true),
        ("matchExpressions: [{key: tier, operator: DoesNotExist}]", false, true),
    ];
    for (selector, allows_gold, allows_plain) in cases {
        let tenant = unique_name("tenant");
        for (namespace, is_allowed) in [(&gold, allows_gold), (&plain, allows_plain)] {
            let objects = installation.cluster.objects(namespace.name());
            objects.apply_object("Tenant", &tenant, &format!("allowedNamespaces: {{{selector}}}")).await;
            let name = format!("{}-{tenant}", if is_allowed { "allowed" } else { "refused" });
            declare_domain(&objects, &name, &tenant).await;
            let wanted = if is_allowed { "Accepted" } else { "Accepted=False" };
            objects.wait_for_condition(&format!("customdomain/{name}"), wanted).await;
        }
    }
}

/// The API server does not let anybody change that label. A unit test proves that the operator does not
/// read it either.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_cannot_have_the_name_label_of_another() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let label = "kubernetes.io/metadata.name";
    let thief = installation.cluster.namespace(&[(label, team.namespace.name())]).await;
    let objects = installation.cluster.objects(thief.name());
    let patch = json!({"metadata": {"labels": {label: team.namespace.name()}}});
    let _ = objects.try_patch(&format!("namespace/{}", thief.name()), &patch).await;
    declare_domain(&objects, "stolen", &team.tenant).await;
    objects.wait_for_condition("customdomain/stolen", "Accepted=False").await;
}

/// A verified domain with a mail, and a token of its tenant.
struct ServedDomain {
    installation: &'static SharedInstallation,
    team: Team,
    address: String,
    live: String,
}

impl ServedDomain {
    async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let address = format!("a@{}", installation.verified_domain(&team, "ours", "mail").await);
        let live = installation.token(&team.tenant_id().await, TokenKind::Live).await;
        let served = Self { installation, team, address, live };
        served.assert_served(1).await;
        served
    }

    /// How many mails the tenant can read.
    async fn mails(&self) -> usize {
        let path = format!("/v1/inbox/{}", self.address);
        let answer = self.installation.request(reqwest::Method::GET, &path).live(&self.live).send().await;
        if answer.status == 200 { answer.json()["emails"].as_array().expect("a list").len() } else { 0 }
    }

    /// Waits until mail is accepted, and at least so many mails can be read.
    async fn assert_served(&self, mails: usize) {
        self.installation.wait_for_mail_reply(&self.address, 250).await;
        eventually("its mail can be read", || async { (self.mails().await >= mails).then_some(()) }).await;
    }

    /// Waits until mail is rejected, and none can be read.
    async fn assert_not_served(&self) {
        self.team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
        self.installation.wait_for_mail_reply(&self.address, 550).await;
        eventually("its mail cannot be read", || async { (self.mails().await == 0).then_some(()) }).await;
    }

    /// Sets or removes the label `team` of the namespace.
    async fn label_namespace(&self, label: Option<&str>) {
        let object = format!("namespace/{}", self.team.namespace.name());
        self.team.patch(&object, &json!({"metadata": {"labels": {"team": label}}})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_serving_without_the_grant_and_serves_again_with_it() {
    let served = ServedDomain::start().await;
    let mails = served.mails().await;
    let only_shop = json!({"allowedNamespaces": {"matchLabels": {"team": "shop"}, "matchExpressions": null}});
    served.team.patch_tenant(only_shop).await;
    served.assert_not_served().await;

    served.label_namespace(Some("shop")).await;
    served.team.wait_for_condition("customdomain/ours", "Ready").await;
    served.assert_served(mails).await;

    served.label_namespace(None).await;
    served.assert_not_served().await;
    assert_conditions(&served.team.get("customdomain/ours").await, &[("Verified", "False")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_reference_when_its_tenant_is_declared_later() {
    let installation = Installation::shared().await;
    let (namespace, tenant) =
        (installation.cluster.namespace(&[("team", "shop")]).await, unique_name("tenant"));
    let objects = installation.cluster.objects(namespace.name());
    declare_domain(&objects, "early", &tenant).await;
    objects.wait_for_condition("customdomain/early", "Accepted=False").await;
    objects.apply_object("Tenant", &tenant, "allowedNamespaces: {matchLabels: {team: shop}}").await;
    objects.wait_for_condition("customdomain/early", "Accepted").await;
}

/// A Tenant or a namespace that is not listed yet is not missing: otherwise each start of an operator would
/// interrupt the service of every domain.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_lists_tenants_or_namespaces_slowly_revokes_no_grant() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    installation.verified_domain(&team, "one", "one").await;
    let before = team.get("customdomain/one").await;
    installation.app.stop_operator().await;
    // A verification that is repeated has a later time.
    installation.app.advance_hours(1);
    for resource in ["tenants", "namespaces"] {
        start_with_slow_list(&mut installation, &team, resource).await;
    }
    let after = team.get("customdomain/one").await;
    assert_eq!(after["status"], before["status"], "its service was interrupted");
}

/// Starts an operator whose list of a resource is held until it has reconciled an object, and stops it.
async fn start_with_slow_list(installation: &mut Installation<Cluster>, team: &Team, resource: &'static str) {
    let proxy = ApiProxy::start(&installation.cluster).await;
    proxy.hold(move |request| {
        request.resource == resource
            && request.name.is_none()
            && !request.query.contains("limit=1&")
            && !request.query.ends_with("limit=1")
    });
    installation.app.start_operator(proxy.client());
    let name = format!("late-{resource}");
    team.apply("CustomDomain", &name, &format!("domain: {}", team.domain(&name))).await;
    let object = format!("customdomain/{name}");
    let has_finalizer = |shown: &Value| shown["metadata"]["finalizers"].is_array();
    team.wait_until(&object, "a finalizer", has_finalizer).await;
    proxy.release();
    team.wait_for_condition(&object, "Accepted").await;
    installation.app.stop_operator().await;
}
