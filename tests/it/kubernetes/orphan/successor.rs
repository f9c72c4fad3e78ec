//! Objects that vanished and are made again.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::World;
use tempmail_tests::kubernetes::{Cluster, Team};
use tempmail_tests::wait::eventually;

use super::super::secret::{is_refused, look, rows, value};
use super::{is_missing, managed_by, noted_as_missing, vanish};

/// Declares the objects of a team, as it does before and after they vanish.
async fn declare(team: &Team<'_>) {
    for (name, policy) in [("goes", "Delete"), ("stays", "Retain")] {
        let spec = format!("domain: {}, deletionPolicy: {policy}", team.domain(name));
        team.apply("CustomDomain", name, &spec).await.expect("it is taken");
    }
    team.apply("ApiToken", "ci", "type: Live").await.expect("it is taken");
    team.apply("Webhook", "hook", "url: 'https://hooks.example.com/in'").await.expect("it is taken");
    team.apply("Mailbox", "box", &format!("address: {}@inbox.localhost", team.tenant))
        .await
        .expect("it is taken");
}

/// Waits until they are what they say.
async fn are_accepted(team: &Team<'_>) {
    for object in ["customdomain/goes", "customdomain/stays"] {
        team.wait(object, "Accepted").await;
    }
    for object in ["apitoken/ci", "webhook/hook", "mailbox/box"] {
        // The Secret of its predecessor goes first, and nobody is told of that.
        eventually("the Secret of the predecessor is gone", || async {
            let accepted = team.kubectl(&["wait", object, "--for=condition=Ready", "--timeout=1s"]).await;
            if accepted.is_err() {
                look(team, object).await;
            }
            accepted.ok()
        })
        .await;
    }
}

async fn id(team: &Team<'_>, object: &str, field: &str) -> Value {
    team.get(object).await["status"][field].clone()
}

async fn sign_in(world: &World<Cluster>, team: &Team<'_>, password: &str) -> u16 {
    let credentials = json!({"address": format!("{}@inbox.localhost", team.tenant), "password": password});
    world.request(Method::POST, "/api/token").json(&credentials).send().await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_the_same_name_and_tenant_begins_at_once_and_others_wait() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let elsewhere = world.cluster.namespace(&[]).await;
    let both = format!("values: [{}, {}]", team.namespace.name(), elsewhere.name());
    let tenant = format!("tenant/{}", team.tenant);
    let allow = json!({"spec": {"allowedNamespaces": {"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [team.namespace.name(), elsewhere.name()]}
    ]}}});
    team.kubectl(&["patch", &tenant, "--type=merge", "-p", &allow.to_string()]).await.expect(&both);
    declare(&team).await;
    for (name, label) in [("former", "renamed"), ("moved", "moved")] {
        let spec = format!("domain: {}", team.domain(label));
        team.apply("CustomDomain", name, &spec).await.expect("it is taken");
        team.wait(&format!("customdomain/{name}"), "Accepted").await;
    }
    are_accepted(&team).await;
    let goes = id(&team, "customdomain/goes", "domainId").await;
    let stays = id(&team, "customdomain/stays", "domainId").await;
    let hook = id(&team, "webhook/hook", "webhookId").await;
    let live = value(&team, "ci-token", "token").await;
    let password = value(&team, "box-mailbox", "password").await;
    assert_eq!(sign_in(&world, &team, &password).await, 200);

    world.app.stop_operator();
    let gone = [
        "customdomain/goes",
        "customdomain/stays",
        "customdomain/former",
        "customdomain/moved",
        "apitoken/ci",
        "webhook/hook",
        "mailbox/box",
    ];
    for object in gone {
        vanish(&team, object).await;
    }
    declare(&team).await;
    world.app.start_operator(world.cluster.client());
    are_accepted(&team).await;
    assert_ne!(id(&team, "customdomain/goes", "domainId").await, goes, "its policy was Delete");
    assert_eq!(id(&team, "customdomain/stays", "domainId").await, stays, "its policy was Retain");
    assert_ne!(id(&team, "webhook/hook", "webhookId").await, hook);
    is_refused(&world, &live).await;
    assert_eq!(sign_in(&world, &team, &password).await, 401);
    assert_eq!(rows(&world, &team).await, (1, 1), "nothing is left of the former ones");
    let noted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM resource WHERE name IN ('goes', 'stays', 'ci', 'hook', 'box')",
    )
    .fetch_one(&world.app.pool)
    .await
    .expect("they are counted");
    assert_eq!(noted, 5);

    // Another name, another namespace: they wait, and take nothing.
    noted_as_missing(&world, "former").await;
    team.apply("CustomDomain", "latter", &format!("domain: {}", team.domain("renamed")))
        .await
        .expect("it is taken");
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: CustomDomain, metadata: {{name: moved, namespace: {}}}, \
         spec: {{tenantRef: {{name: {}}}, domain: {}}}}}",
        elsewhere.name(),
        team.tenant,
        team.domain("moved")
    );
    world.cluster.apply(&manifest).await.expect("it is taken");
    team.wait_for_reason("customdomain/latter", "Ready", "DomainClaimed").await;
    let path = "--for=jsonpath={.status.conditions[?(@.type=='Ready')].reason}=DomainClaimed";
    let wait = ["wait", "-n", elsewhere.name(), "customdomain/moved", path, "--timeout=120s"];
    world.cluster.kubectl(&wait).await.expect("it waits");
    for label in ["renamed", "moved"] {
        assert_eq!(managed_by(&world, &team.domain(label)).await.as_deref(), Some("kubernetes"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_begins_at_once_and_inherits_nothing_unless_it_adopts() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let object = format!("tenant/{}", team.tenant);
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail")))
        .await
        .expect("it is taken");
    team.wait("customdomain/ours", "Accepted").await;
    let first = id(&team, &object, "tenantId").await;
    let pro = world.token(first.as_str().expect("an id"), TokenKind::Pro).await;

    world.app.stop_operator();
    vanish(&team, &object).await;
    team.apply_tenant("  deletionPolicy: Delete").await;
    world.app.start_operator(world.cluster.client());
    team.wait(&object, "Ready").await;
    let second = id(&team, &object, "tenantId").await;
    assert_ne!(second, first);
    let domains = world.request(Method::GET, "/pro/api/domains").bearer(&pro).send().await;
    domains.assert_api_error(403, "account_disabled");
    team.wait_for_reason("customdomain/ours", "Ready", "TenantReplaced").await;

    // What it asks to adopt is kept, although it said that it goes.
    let pro = world.token(second.as_str().expect("an id"), TokenKind::Pro).await;
    world.app.stop_operator();
    vanish(&team, &object).await;
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: Tenant, \
         metadata: {{name: {}, annotations: {{tempmail.dev/adopt-tenant: '{}'}}}}, spec: {{}}}}",
        team.tenant,
        second.as_str().expect("an id")
    );
    world.cluster.apply(&manifest).await.expect("it is taken");
    world.app.start_operator(world.cluster.client());
    team.wait(&object, "Ready").await;
    assert_eq!(id(&team, &object, "tenantId").await, second);
    let kept = world.request(Method::GET, "/pro/api/domains").bearer(&pro).send().await;
    assert_eq!(kept.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_domain_that_is_in_use_is_taken_over() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let object = format!("systemdomain/{}", team.tenant);
    let spec = format!("domain: {}, default: true", team.domain("sys"));
    team.apply_without_namespace("SystemDomain", &spec).await.expect("it is taken");
    team.wait(&object, "Ready").await;
    let address = format!("address: {}@{}", team.tenant, team.domain("sys"));
    team.apply("Mailbox", "box", &address).await.expect("it is taken");
    team.wait("mailbox/box", "Ready").await;
    let (domain, mailbox) =
        (id(&team, &object, "domainId").await, id(&team, "mailbox/box", "mailboxId").await);

    world.app.stop_operator();
    vanish(&team, &object).await;
    team.apply_without_namespace("SystemDomain", &spec).await.expect("it is taken");
    world.app.start_operator(world.cluster.client());
    team.wait(&object, "Ready").await;
    assert_eq!(id(&team, &object, "domainId").await, domain);
    assert_eq!(is_missing(&world, &team.tenant).await, Some(false), "the former one is forgotten");
    assert_eq!(id(&team, "mailbox/box", "mailboxId").await, mailbox);
    // Another object waits.
    let other = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: SystemDomain, metadata: {{name: {}-b}}, spec: {{{spec}}}}}",
        team.tenant
    );
    world.cluster.apply(&other).await.expect("it is taken");
    team.wait_for_reason(&format!("{object}-b"), "Ready", "DomainClaimed").await;
}
