//! What people do to objects that they should not, or that nobody expects.

use serde_json::{Value, json};
use tempmail_tests::kubernetes::{Team, condition};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Cluster, World};

/// Takes the rules of a kind's spec away, as the definitions of another version might.
pub(super) async fn loosen(world: &World<Cluster>, plural: &str) {
    let definition = format!("{plural}.tempmail.dev");
    let version = "/spec/versions/0";
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut patch = vec![
        json!({"op": "replace", "path": format!("{version}/schema/openAPIV3Schema/properties/spec"), "value": spec}),
    ];
    if plural != "tenants" {
        patch.push(json!({"op": "remove", "path": format!("{version}/selectableFields")}));
    }
    let patch = Value::from(patch).to_string();
    world.cluster.kubectl(&["patch", "crd", &definition, "--type=json", "-p", &patch]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_is_told_so_and_harms_no_other() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let domain = |label: &str| format!("domain: {}", team.domain(label));
    team.apply("CustomDomain", "served", &domain("served")).await.unwrap();
    world.verify(&team, "customdomain/served").await;
    team.apply("CustomDomain", "spoilt", &domain("spoilt")).await.unwrap();
    team.wait("customdomain/spoilt", "Accepted").await;
    loosen(&world, "customdomains").await;
    loosen(&world, "tenants").await;

    let spoil = async |object: &str, spec: Value| {
        let patch = json!({ "spec": spec }).to_string();
        eventually("the rules are gone", || async {
            team.kubectl(&["patch", object, "--type=merge", "-p", &patch]).await.ok()
        })
        .await;
    };
    spoil("customdomain/spoilt", json!({"domain": 7})).await;
    team.wait_for_reason("customdomain/spoilt", "Ready", "InvalidSpec").await;
    team.apply("CustomDomain", "bad", "domain: [1]").await.unwrap();
    let bad = team.wait_for_reason("customdomain/bad", "Ready", "InvalidSpec").await;
    for (kind, status) in [("Ready", "False"), ("Accepted", "False"), ("Stalled", "True")] {
        assert_eq!(condition(&bad, kind).unwrap()["status"], status, "{kind}");
    }
    team.apply("CustomDomain", "good", &domain("good")).await.unwrap();
    team.wait("customdomain/good", "Accepted").await;

    // A Tenant that can't be read: what it granted stays, and nothing new is granted.
    let tenant = format!("tenant/{}", team.tenant);
    spoil(&tenant, json!({"retentionHours": "many"})).await;
    team.wait_for_reason(&tenant, "Ready", "InvalidSpec").await;
    let served = team.get("customdomain/served").await;

    // And when they are there before the operator is.
    world.app.start_operator(world.cluster.client());
    team.apply("CustomDomain", "late", "domain: {}").await.unwrap();
    team.wait_for_reason("customdomain/late", "Ready", "InvalidSpec").await;
    team.kubectl(&["annotate", "customdomain/served", "example.com/touched=yes"]).await.unwrap();
    assert_eq!(team.get("customdomain/served").await["status"], served["status"]);
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&team.get("customdomain/bad").await), version(&bad), "it is told once");

    spoil(&tenant, json!({"retentionHours": 72})).await;
    team.wait(&tenant, "Ready").await;
    team.apply("CustomDomain", "last", &domain("last")).await.unwrap();
    team.wait("customdomain/last", "Accepted").await;
    assert_eq!(team.get("customdomain/served").await["status"], served["status"], "it was served all along");

    for object in ["customdomain/bad", "customdomain/spoilt"] {
        team.delete(object).await;
    }
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM domain WHERE name = $1 AND removed_at IS NULL")
        .bind(team.domain("spoilt"))
        .fetch_one(&world.app.pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "its row went with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_left_alone_until_it_goes() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let (namespace, tenant, domain) = (team.namespace.name(), &team.tenant, team.domain("mail"));
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: CustomDomain, metadata: {{name: ours, namespace: {namespace}, \
         annotations: {{tempmail.dev/paused: 'true'}}}}, spec: {{tenantRef: {{name: {tenant}}}, domain: {domain}}}}}"
    );
    world.cluster.apply(&manifest).await.unwrap();
    let shown = team.wait("customdomain/ours", "ReconciliationPaused").await;
    assert_eq!(condition(&shown, "Ready").unwrap()["reason"], "Pending");
    assert!(shown["metadata"].get("finalizers").is_none(), "{shown}");
    let count = async || -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM domain WHERE name = $1 AND removed_at IS NULL")
            .bind(&domain)
            .fetch_one(&world.pool())
            .await
            .unwrap()
    };
    assert_eq!(count().await, 0);

    team.kubectl(&["annotate", "customdomain/ours", "tempmail.dev/paused-"]).await.unwrap();
    let shown = team.wait("customdomain/ours", "Accepted").await;
    assert!(condition(&shown, "ReconciliationPaused").is_none(), "{shown}");
    assert_eq!(count().await, 1);
    team.kubectl(&["annotate", "customdomain/ours", "tempmail.dev/paused=true"]).await.unwrap();
    let shown = team.wait("customdomain/ours", "ReconciliationPaused").await;
    assert_eq!(condition(&shown, "Accepted").unwrap()["status"], "True", "what was told stays");
    team.delete("customdomain/ours").await;
    assert_eq!(count().await, 0, "deletion is carried out");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_objects_for_a_domain_the_second_follows_the_first() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let spec = format!("domain: {}", team.domain("mail"));
    team.apply("CustomDomain", "first", &spec).await.unwrap();
    let first = team.wait("customdomain/first", "Accepted").await;
    team.apply("CustomDomain", "second", &spec).await.unwrap();
    let second = team.wait_for_reason("customdomain/second", "Accepted", "DomainClaimed").await;
    assert_eq!(condition(&second, "Stalled").unwrap()["status"], "True");
    assert!(second["status"].get("domainId").is_none(), "{second}");

    team.delete("customdomain/first").await;
    let second = team.wait("customdomain/second", "Accepted").await;
    assert_ne!(second["status"]["domainId"], first["status"]["domainId"]);

    // One that is made again at once is another, whose domain is another.
    team.delete("customdomain/second").await;
    team.apply("CustomDomain", "second", &spec).await.unwrap();
    let again = team.wait("customdomain/second", "Accepted").await;
    assert_ne!(again["status"]["domainId"], second["status"]["domainId"]);
}
