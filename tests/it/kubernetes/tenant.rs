//! Tenants, declared: made, changed, deleted, and made again.

use jiff::{SignedDuration, Timestamp, Unit};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::id::PLATFORM_TENANT;
use tempmail_model::token::TokenKind;
use tempmail_tests::World;
use tempmail_tests::kubernetes::{SharedWorld, Team, condition};
use tempmail_tests::wait::eventually;
use uuid::Uuid;

use super::tenancy::is_answered;

/// The id of the team's tenant.
async fn tenant_id(team: &Team<'_>) -> String {
    let shown = team.get(&format!("tenant/{}", team.tenant)).await;
    shown["status"]["tenantId"].as_str().expect("the tenant is there").to_owned()
}

/// The names of the domains that a token's tenant has.
async fn domains(world: &SharedWorld, pro: &str) -> Vec<String> {
    let answer = world.request(Method::GET, "/pro/api/domains").bearer(pro).send().await.expect(200);
    let name = |domain: &Value| domain["domain"].as_str().unwrap().to_owned();
    answer["domains"].as_array().unwrap().iter().map(name).collect()
}

/// Declares a Tenant with an annotation that asks to adopt a tenant.
async fn adopt(world: &SharedWorld, name: &str, id: &str, spec: &str) {
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: Tenant, \
         metadata: {{name: {name}, annotations: {{tempmail.dev/adopt-tenant: '{id}'}}}}, spec: {{{spec}}}}}"
    );
    world.cluster.apply(&manifest).await.expect("the tenant is taken");
}

/// A tenant that was removed, and whose row is still there: something that it had is not cleared away yet.
async fn removed_tenant(world: &SharedWorld) -> Uuid {
    let removed = world.unmanaged_tenant(&name()).await.id;
    let statements = [
        "INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_status, verify_token, created_at, deadline)
         VALUES (gen_random_uuid(), $1::uuid || '.example', $1, false, false, 'pending', $1::text, now(), now())",
        "SELECT remove_tenant($1, now(), 1)",
        "UPDATE domain SET removed_at = NULL WHERE tenant = $1",
    ];
    for statement in statements {
        sqlx::query(statement).bind(removed).execute(&world.pool()).await.unwrap();
    }
    removed
}

async fn wait_for_reason(world: &SharedWorld, tenant: &str, reason: &str) -> Value {
    let path = format!("--for=jsonpath={{.status.conditions[?(@.type=='Ready')].reason}}={reason}");
    let object = format!("tenant/{tenant}");
    let waited = world.cluster.kubectl(&["wait", &object, &path, "--timeout=120s"]).await;
    let shown = world.cluster.kubectl(&["get", &object, "-o", "json"]).await.unwrap();
    assert!(waited.is_ok(), "{tenant} never has {reason}: {shown}");
    serde_json::from_str(&shown).unwrap()
}

fn name() -> String {
    format!("t-{}", &Uuid::new_v4().simple().to_string()[..12])
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_made_again_inherits_nothing_unless_it_adopts() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let domain = team.domain("mail");
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.unwrap();
    world.verify(&team, "customdomain/ours").await;
    let address = format!("a@{domain}");
    is_answered(world, &address, 250).await;
    let (first, object) = (tenant_id(&team).await, format!("tenant/{}", team.tenant));
    let of_first = world.token(&first, TokenKind::Live).await;
    let inbox = format!("/v1/inbox/{address}");

    team.delete(&object).await;
    world.request(Method::GET, &inbox).live(&of_first).send().await.assert_v1_error(403, "account_disabled");
    team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    is_answered(world, &address, 550).await;

    team.declare_tenant("").await;
    let second = tenant_id(&team).await;
    assert_ne!(second, first);
    team.wait_for_reason("customdomain/ours", "Ready", "TenantReplaced").await;
    is_answered(world, &address, 550).await;
    let (pro, live) =
        (world.token(&second, TokenKind::Pro).await, world.token(&second, TokenKind::Live).await);
    assert!(domains(world, &pro).await.is_empty());
    assert_eq!(world.request(Method::GET, &inbox).live(&live).send().await.status, 404);

    team.delete(&object).await;
    let allowed = format!(
        "allowedNamespaces: {{matchExpressions: [{{key: kubernetes.io/metadata.name, operator: In, values: [{}]}}]}}",
        team.namespace.name()
    );
    adopt(world, &team.tenant, &first, &allowed).await;
    team.wait(&object, "Ready").await;
    assert_eq!(tenant_id(&team).await, first);
    team.wait("customdomain/ours", "Ready").await;
    let emails = world.request(Method::GET, &inbox).live(&of_first).send().await.expect(200);
    assert!(!emails["emails"].as_array().unwrap().is_empty(), "what it had is there");
    is_answered(world, &address, 250).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_tenant_that_is_there_and_nobodys_is_adopted() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let removed = removed_tenant(world).await;
    let refused = [
        (tenant_id(&team).await, "TenantNotAdoptable"),
        (PLATFORM_TENANT.to_string(), "TenantNotAdoptable"),
        (Uuid::new_v4().to_string(), "TenantNotAdoptable"),
        (removed.to_string(), "TenantNotAdoptable"),
        ("acme".to_owned(), "InvalidSpec"),
        (String::new(), "InvalidSpec"),
    ];
    for (id, reason) in refused {
        let tenant = name();
        adopt(world, &tenant, &id, "").await;
        let shown = wait_for_reason(world, &tenant, reason).await;
        assert_eq!(condition(&shown, "Stalled").unwrap()["status"], "True", "{id}");
        assert!(shown["status"].get("tenantId").is_none(), "{id}");
        let taken: i64 = sqlx::query_scalar("SELECT count(*) FROM tenant WHERE name = $1")
            .bind(&tenant)
            .fetch_one(&world.pool())
            .await
            .unwrap();
        assert_eq!(taken, 0, "{id} was taken over for a moment");
    }
    let free = world.unmanaged_tenant(&name()).await;
    let tenant = name();
    adopt(world, &tenant, &free.id.to_string(), "limits: {customDomains: 3}").await;
    let shown = wait_for_reason(world, &tenant, "Ready").await;
    assert_eq!(shown["status"]["tenantId"], free.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_has_a_tenant_says_that_it_adopts_no_other() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let (object, ours) = (format!("tenant/{}", team.tenant), tenant_id(&team).await);
    let other = world.unmanaged_tenant(&name()).await;
    let said = async |needle: &str| {
        eventually(&format!("Ready says {needle}"), || async {
            let shown = team.get(&object).await;
            let ready = condition(&shown, "Ready").unwrap();
            ready["message"].as_str().unwrap().contains(needle).then(|| ready["status"].clone())
        })
        .await
    };
    let annotate = async |value: &str| {
        world.cluster.kubectl(&["annotate", "--overwrite", &object, value]).await.unwrap();
    };
    annotate(&format!("tempmail.dev/adopt-tenant={}", other.id)).await;
    let ignored = format!("ignored, because the object has the tenant {ours} already. Remove the annotation");
    assert_eq!(said(&ignored).await, "True", "what it has is ready");
    assert_eq!(tenant_id(&team).await, ours);
    // Its own is no other one.
    for value in [format!("tempmail.dev/adopt-tenant={ours}"), "tempmail.dev/adopt-tenant-".to_owned()] {
        annotate(&format!("tempmail.dev/adopt-tenant={}", other.id)).await;
        said(&ignored).await;
        annotate(&value).await;
        assert_eq!(said("Resource is ready.").await, "True");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_is_left_alone() {
    let world = World::shared().await;
    let taken = name();
    let tenant = world.unmanaged_tenant(&taken).await;
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: Tenant, metadata: {{name: {taken}}}, spec: {{suspended: true}}}}"
    );
    world.cluster.apply(&manifest).await.unwrap();
    wait_for_reason(world, &taken, "TenantNameTaken").await;
    assert!(domains(world, &tenant.pro).await.is_empty(), "it is not suspended");
    world.cluster.kubectl(&["delete", "tenant", &taken, "--timeout=120s"]).await.unwrap();
    assert!(domains(world, &tenant.pro).await.is_empty(), "it is not released");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_that_says_so_takes_all_along() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "  deletionPolicy: Delete").await;
    let domain = team.domain("mail");
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.unwrap();
    world.verify(&team, "customdomain/ours").await;
    let first = tenant_id(&team).await;
    let live = world.token(&first, TokenKind::Live).await;
    team.delete(&format!("tenant/{}", team.tenant)).await;
    let inbox = format!("/v1/inbox/a@{domain}");
    assert_eq!(world.request(Method::GET, &inbox).live(&live).send().await.status, 401);
    is_answered(world, &format!("a@{domain}"), 550).await;
    team.wait_for_reason("customdomain/ours", "Ready", "TenantRefNotPermitted").await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM domain WHERE name = $1 AND removed_at IS NULL")
        .bind(&domain)
        .fetch_one(&world.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);

    // Nothing of the former tenant is left, so the object's domain is the new one's.
    team.declare_tenant("").await;
    team.wait("customdomain/ours", "Accepted").await;
    world.verify(&team, "customdomain/ours").await;
    assert_ne!(tenant_id(&team).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_limits_and_retention_reach_http() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "  limits: {customDomains: 1}\n  retentionHours: 6").await;
    let (object, id) = (format!("tenant/{}", team.tenant), tenant_id(&team).await);
    let (pro, live) = (world.token(&id, TokenKind::Pro).await, world.token(&id, TokenKind::Live).await);
    let domain = team.domain("mail");
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.unwrap();
    world.verify(&team, "customdomain/ours").await;
    let expect_status = async |status: u16| {
        eventually("the tenant's tokens are answered", || async {
            let answer = world.request(Method::GET, "/pro/api/domains").bearer(&pro).send().await;
            (answer.status == status).then_some(())
        })
        .await;
    };
    let patch = async |spec: Value| {
        let patch = json!({ "spec": spec }).to_string();
        world.cluster.kubectl(&["patch", &object, "--type=merge", "-p", &patch]).await.unwrap();
    };
    patch(json!({"suspended": true})).await;
    expect_status(403).await;
    is_answered(world, &format!("a@{domain}"), 550).await;
    patch(json!({"suspended": false})).await;
    expect_status(200).await;
    is_answered(world, &format!("a@{domain}"), 250).await;

    let path = format!("/v1/inbox/a@{domain}");
    let listed = world.request(Method::GET, &path).live(&live).send().await.expect(200);
    let path = format!("/v1/email/{}", listed["emails"][0]["id"].as_str().unwrap());
    let email = world.request(Method::GET, &path).live(&live).send().await.expect(200);
    let time = |key: &str| email[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    let kept = time("expires_at").duration_since(time("created_at"));
    assert_eq!(kept.round(Unit::Minute).unwrap(), SignedDuration::from_hours(6), "{email}");

    team.apply("CustomDomain", "more", &format!("domain: {}", team.domain("more"))).await.unwrap();
    team.wait_for_reason("customdomain/more", "Accepted", "QuotaExceeded").await;
    let add = json!({"domain": team.domain("http")});
    let refused = world.request(Method::POST, "/pro/api/domains").bearer(&pro).json(&add).send().await;
    refused.assert_api_error(403, "domain_limit_reached");
    patch(json!({"limits": {"customDomains": 2}})).await;
    team.wait("customdomain/more", "Accepted").await;

    patch(json!({"limits": {"customDomains": 1}})).await;
    let shown = team.wait(&object, "QuotaExceeded").await;
    assert_eq!(condition(&shown, "Ready").unwrap()["status"], "True", "what is there stays");
    patch(json!({"limits": {"customDomains": 2}})).await;
    eventually("the limit is kept again", || async {
        condition(&team.get(&object).await, "QuotaExceeded").is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_follows_objects_that_come_and_go() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let is_used = async |domains: i64, tokens: i64| {
        let what = format!("{domains} domains and {tokens} tokens are told");
        eventually(&what, async || {
            let shown = team.get(&format!("tenant/{}", team.tenant)).await;
            let usage = &shown["status"]["usage"];
            (usage["customDomains"] == domains && usage["tokens"] == tokens).then_some(())
        })
        .await;
    };
    is_used(0, 0).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await.unwrap();
    team.apply("ApiToken", "ours", "type: Pro").await.unwrap();
    is_used(1, 1).await;
    team.delete("customdomain/ours").await;
    is_used(0, 1).await;
}
