//! Who may refer to a Tenant: objects of the namespaces that it allows, as long as it does.

use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::World;
use tempmail_tests::kubernetes::{SharedWorld, Team, condition};
use tempmail_tests::smtp::{message, send_mail};
use tempmail_tests::wait::eventually;
use uuid::Uuid;

/// Waits until a mail to this address is answered by this code.
pub(super) async fn is_answered<C>(world: &World<C>, recipient: &str, code: u16) {
    let text = message("Ada <ada@client.example>", "a mail", "");
    eventually(&format!("{recipient} is answered {code}"), || async {
        let reply = send_mail(world.app.smtp(), "ada@client.example", recipient, &text).await;
        (reply.code == code).then_some(())
    })
    .await;
}

fn name() -> String {
    format!("t-{}", &Uuid::new_v4().simple().to_string()[..12])
}

/// A Tenant with these lines of spec.
async fn declare_tenant(world: &SharedWorld, name: &str, spec: &str) {
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: Tenant, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
    );
    world.cluster.apply(&manifest).await.expect("the tenant is taken");
}

/// A CustomDomain `name` of a tenant in a namespace.
async fn declare_domain(world: &SharedWorld, namespace: &str, name: &str, tenant: &str) {
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: CustomDomain, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{tenantRef: {{name: {tenant}}}, domain: {name}.{tenant}.example}}}}"
    );
    world.cluster.apply(&manifest).await.expect("the domain is taken");
}

async fn wait(world: &SharedWorld, namespace: &str, object: &str, until: &str) -> Value {
    let wait = ["wait", "-n", namespace, object, &format!("--for={until}"), "--timeout=120s"];
    let waited = world.cluster.kubectl(&wait).await;
    let shown = world.cluster.kubectl(&["get", "-n", namespace, object, "-o", "json"]).await.unwrap();
    assert!(waited.is_ok(), "{object} is never {until}: {shown}");
    serde_json::from_str(&shown).unwrap()
}

const REFUSED: &str = "condition=Accepted=False";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_names_nobody_is_as_good_as_none() {
    let world = World::shared().await;
    let namespace = world.cluster.namespace(&[("team", "shop")]).await;
    let specs = [
        None,
        Some(""),
        Some("allowedNamespaces: {}"),
        Some("allowedNamespaces: {matchLabels: {}}"),
        Some("allowedNamespaces: {matchExpressions: []}"),
        Some("allowedNamespaces: {matchExpressions: [{key: team, operator: In, values: []}]}"),
        Some("allowedNamespaces: {matchLabels: {team: ship}}"),
    ];
    let mut told = Vec::new();
    for spec in specs {
        let tenant = name();
        if let Some(spec) = spec {
            declare_tenant(world, &tenant, spec).await;
            wait(world, namespace.name(), &format!("tenant/{tenant}"), "condition=Ready").await;
        }
        declare_domain(world, namespace.name(), &tenant, &tenant).await;
        let shown = wait(world, namespace.name(), &format!("customdomain/{tenant}"), REFUSED).await;
        let mut status = shown["status"].clone();
        for condition in status["conditions"].as_array_mut().unwrap() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        told.push((spec, status));
    }
    assert_eq!(condition_reason(&told[0].1), "TenantRefNotPermitted");
    for (spec, status) in &told {
        assert_eq!(status.to_string(), told[0].1.to_string(), "{spec:?} shows that the Tenant is there");
    }
}

fn condition_reason(status: &Value) -> &str {
    status["conditions"][0]["reason"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_is_read_as_everywhere() {
    let world = World::shared().await;
    let gold = world.cluster.namespace(&[("tier", "gold")]).await;
    let plain = world.cluster.namespace(&[]).await;
    let cases = [
        ("matchLabels: {tier: gold}", true, false),
        ("matchExpressions: [{key: tier, operator: In, values: [gold, silver]}]", true, false),
        ("matchExpressions: [{key: tier, operator: Exists}]", true, false),
        ("matchExpressions: [{key: tier, operator: NotIn, values: [gold]}]", false, true),
        ("matchExpressions: [{key: tier, operator: DoesNotExist}]", false, true),
    ];
    for (selector, allows_gold, allows_plain) in cases {
        let tenant = name();
        declare_tenant(world, &tenant, &format!("allowedNamespaces: {{{selector}}}")).await;
        for (namespace, label, is_allowed) in [(&gold, "gold", allows_gold), (&plain, "plain", allows_plain)]
        {
            let object = format!("{label}-{tenant}");
            declare_domain(world, namespace.name(), &object, &tenant).await;
            let until = if is_allowed { "condition=Accepted" } else { REFUSED };
            wait(world, namespace.name(), &format!("customdomain/{object}"), until).await;
        }
    }
}

/// The API server does not let that label be another; that the operator would not read it either is
/// proved by a test of its own, since nobody can forge it here.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_cannot_take_the_name_of_another() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let thief = world.cluster.namespace(&[("kubernetes.io/metadata.name", team.namespace.name())]).await;
    let label = format!("kubernetes.io/metadata.name={}", team.namespace.name());
    let _ = world.cluster.kubectl(&["label", "namespace", thief.name(), &label, "--overwrite"]).await;
    declare_domain(world, thief.name(), "stolen", &team.tenant).await;
    wait(world, thief.name(), "customdomain/stolen", REFUSED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_goes_with_the_grant_and_comes_back_with_it() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let domain = team.domain("mail");
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.unwrap();
    world.verify(&team, "customdomain/ours").await;
    let address = format!("a@{domain}");
    is_answered(world, &address, 250).await;
    let tenant = team.get(&format!("tenant/{}", team.tenant)).await;
    let tenant_id = tenant["status"]["tenantId"].as_str().unwrap();
    let live = world.token(tenant_id, TokenKind::Live).await;
    let emails = async || {
        let answer = world.request(reqwest::Method::GET, &format!("/v1/inbox/{address}")).live(&live).send();
        let answer = answer.await;
        (answer.status == 200).then(|| answer.json()["emails"].as_array().unwrap().len())
    };
    let before = emails().await;
    assert!(before > Some(0));

    let only = |label: &str| json!({"spec": {"allowedNamespaces": {"matchLabels": {"team": label}, "matchExpressions": null}}});
    let of_tenant = format!("tenant/{}", team.tenant);
    let patch = only("shop").to_string();
    world.cluster.kubectl(&["patch", &of_tenant, "--type=merge", "-p", &patch]).await.unwrap();
    team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    is_answered(world, &address, 550).await;
    eventually("its mail can't be read", || async { (emails().await.unwrap_or(0) == 0).then_some(()) }).await;

    let namespace = team.namespace.name();
    world.cluster.kubectl(&["label", "namespace", namespace, "team=shop"]).await.unwrap();
    team.wait("customdomain/ours", "Ready").await;
    eventually("its mail is back", || async { (emails().await >= before).then_some(()) }).await;
    is_answered(world, &address, 250).await;

    world.cluster.kubectl(&["label", "namespace", namespace, "team-"]).await.unwrap();
    let shown = team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    assert_eq!(condition(&shown, "Verified").unwrap()["status"], "False");
    is_answered(world, &address, 550).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_may_come_after_what_refers_to_it() {
    let world = World::shared().await;
    let (namespace, tenant) = (world.cluster.namespace(&[("team", "shop")]).await, name());
    declare_domain(world, namespace.name(), "early", &tenant).await;
    wait(world, namespace.name(), "customdomain/early", REFUSED).await;
    declare_tenant(world, &tenant, "allowedNamespaces: {matchLabels: {team: shop}}").await;
    wait(world, namespace.name(), "customdomain/early", "condition=Accepted").await;
}

/// What was not read of the API server yet is not missing: else each start of an operator would stop
/// the service of every domain.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_reads_slowly_takes_no_grant_away() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    for name in ["one", "two"] {
        team.apply("CustomDomain", name, &format!("domain: {}", team.domain(name))).await.unwrap();
        world.verify(&team, &format!("customdomain/{name}")).await;
    }
    let before = team.get("customdomain/one").await;
    world.app.stop_operator();
    world.app.clock.advance(jiff::SignedDuration::from_hours(1));
    for slow in ["tenants", "namespaces"] {
        let proxy = tempmail_tests::ApiProxy::start(&world.cluster).await;
        proxy.hold(move |request| {
            request.resource == slow
                && request.name.is_none()
                && !request.query.contains("limit=1&")
                && !request.query.ends_with("limit=1")
        });
        world.app.start_operator(proxy.client());
        let late = format!("late-{slow}");
        team.apply("CustomDomain", &late, &format!("domain: {}", team.domain(&late))).await.unwrap();
        let has_finalizer = "jsonpath={.metadata.finalizers}";
        let object = format!("customdomain/{late}");
        team.kubectl(&["wait", &object, &format!("--for={has_finalizer}"), "--timeout=120s"]).await.unwrap();
        proxy.release();
        team.wait(&object, "Accepted").await;
        world.app.stop_operator();
    }
    let after = team.get("customdomain/one").await;
    assert_eq!(after["status"], before["status"], "it was never out of service");
    let verified: i64 = sqlx::query_scalar(
        "SELECT count(DISTINCT verified_at) FROM domain WHERE serves AND verified_at < $1",
    )
    .bind(jiff_sqlx::ToSqlx::to_sqlx(
        tempmail_model::clock::Clock::now(&world.app.clock) - jiff::SignedDuration::from_mins(50),
    ))
    .fetch_one(&world.app.pool)
    .await
    .unwrap();
    assert_eq!(verified, 2);
}
