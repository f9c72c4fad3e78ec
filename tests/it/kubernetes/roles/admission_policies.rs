//! The admission policies of the chart: what the API server refuses to the operator's account, and to all.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tempmail_crds::Tenant;
use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::Objects;
use tempmail_tests::wait::eventually;

use super::InstalledRoles;
use crate::kubernetes::charts::render;

/// Uid of an object that does not exist.
const UID: &str = "5f0c4f5e-7a52-4c3f-9d3b-0d5c2a8e6a11";

/// A Secret as the operator writes it for the object `ci` of a kind and uid.
fn own_secret(kind: &str, uid: &str) -> Value {
    json!({
        "metadata": {
            "name": "ci-token",
            "labels": {"app.kubernetes.io/managed-by": "tempmail-operator", "tempmail.dev/owner-uid": uid},
            "ownerReferences": [{
                "apiVersion": "tempmail.dev/v1alpha1", "kind": kind, "name": "ci", "uid": uid, "controller": true,
            }],
        },
        "type": "Opaque",
        "data": {"token": "dG9rZW4="},
    })
}

/// The Secret of an ApiToken of this uid, changed.
fn changed(uid: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut secret = own_secret("ApiToken", uid);
    change(&mut secret);
    secret
}

/// Secrets that the operator may not create, each with what is wrong.
fn foreign_secrets() -> Vec<(&'static str, Value)> {
    let set = |pointer: &'static str, value: Value| {
        changed(UID, |secret| *secret.pointer_mut(pointer).expect("the field is there") = value)
    };
    let account = json!({"kubernetes.io/service-account.name": "default"});
    vec![
        (
            "a token of a service account",
            changed(UID, |secret| {
                secret["type"] = json!("kubernetes.io/service-account-token");
                secret["metadata"]["annotations"] = account;
            }),
        ),
        ("a token to join the cluster", set("/type", json!("bootstrap.kubernetes.io/token"))),
        ("no label", set("/metadata/labels", json!({}))),
        ("the label of another", set("/metadata/labels/tempmail.dev~1owner-uid", json!("another"))),
        ("no owner", set("/metadata/ownerReferences", json!([]))),
        ("an owner that is no controller", set("/metadata/ownerReferences/0/controller", json!(false))),
        ("an owner of another group", set("/metadata/ownerReferences/0/apiVersion", json!("example.com/v1"))),
        ("an owner without Secrets", set("/metadata/ownerReferences/0/kind", json!("CustomDomain"))),
        ("a name alone", json!({"metadata": {"name": "theirs"}, "data": {"token": "dG9rZW4="}})),
    ]
}

/// The API server's answer to the creation of a Secret, which it only tries.
async fn try_create(secrets: &Api<Secret>, secret: &Value) -> Result<Secret, String> {
    let secret: Secret = serde_json::from_value(secret.clone()).expect("it is a Secret");
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    secrets.create(&parameters, &secret).await.map_err(|error| error.to_string())
}

/// Asserts that the policy of the release refused it.
fn assert_denied(roles: &InstalledRoles, what: &str, answer: Result<Secret, String>) {
    let why = answer.map(drop).expect_err(what);
    let policy = format!("ValidatingAdmissionPolicy '{}-operator-secrets'", roles.release);
    assert!(why.contains(&policy), "{what}: {why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_creates_secrets_of_its_own_kind_only() {
    let cluster = Cluster::shared().await;
    let (home, team) = (cluster.namespace(&[]).await, cluster.namespace(&[]).await);
    let roles = InstalledRoles::install(cluster, home.name()).await;
    let secrets: Api<Secret> = Api::namespaced(roles.client(cluster), team.name());
    for kind in ["Webhook", "ApiToken", "Mailbox"] {
        try_create(&secrets, &own_secret(kind, UID)).await.unwrap_or_else(|why| panic!("{kind}: {why}"));
    }
    let of_administrator: Api<Secret> = team.api();
    for (what, secret) in foreign_secrets() {
        assert_denied(&roles, what, try_create(&secrets, &secret).await);
        let answer = try_create(&of_administrator, &secret).await;
        answer.unwrap_or_else(|why| panic!("others can't create one with {what}: {why}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_creates_the_keys_of_its_release_only() {
    let cluster = Cluster::shared().await;
    let (home, team) = (cluster.namespace(&[]).await, cluster.namespace(&[]).await);
    let roles = InstalledRoles::install(cluster, home.name()).await;
    let at_home: Api<Secret> = Api::namespaced(roles.client(cluster), home.name());
    let elsewhere: Api<Secret> = Api::namespaced(roles.client(cluster), team.name());
    let keys =
        |name: &str| json!({"metadata": {"name": name}, "stringData": {"jwt.yaml": "[]"}, "type": "Opaque"});
    let name = format!("{}-keys", roles.release);
    try_create(&at_home, &keys(&name)).await.expect("it may create the keys");
    assert_denied(&roles, "another name", try_create(&at_home, &keys("other-keys")).await);
    assert_denied(&roles, "another namespace", try_create(&elsewhere, &keys(&name)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_changes_its_own_secrets_only() {
    let cluster = Cluster::shared().await;
    let (home, team) = (cluster.namespace(&[]).await, cluster.namespace(&[]).await);
    let roles = InstalledRoles::install(cluster, home.name()).await;
    let secrets: Api<Secret> = Api::namespaced(roles.client(cluster), team.name());
    let of_administrator: Api<Secret> = team.api();
    let secret = |value: &Value| serde_json::from_value::<Secret>(value.clone()).expect("it is a Secret");
    let parameters = PostParams::default();

    // Kubernetes deletes the Secret of an object that does not exist.
    let spec = "tenantRef: {name: nobody}, type: Live";
    let object = cluster.objects(team.name()).apply_object("ApiToken", "ci", spec).await;
    let uid = object["metadata"]["uid"].as_str().expect("an object has a uid");
    let own = own_secret("ApiToken", uid);
    secrets.create(&parameters, &secret(&own)).await.expect("it may create its own");
    let rotated = changed(uid, |secret| secret["data"]["token"] = json!("cm90YXRlZA=="));
    secrets.replace("ci-token", &parameters, &secret(&rotated)).await.expect("it may change its own");
    let given_away = changed(uid, |secret| secret["metadata"]["ownerReferences"] = json!([]));
    let answer = secrets.replace("ci-token", &parameters, &secret(&given_away)).await;
    assert_denied(&roles, "it gives its own away", answer.map_err(|error| error.to_string()));

    let theirs = json!({"metadata": {"name": "theirs"}, "data": {"password": "dGhlaXJz"}, "type": "Opaque"});
    of_administrator.create(&parameters, &secret(&theirs)).await.expect("others may create one");
    let taken = changed(uid, |secret| secret["metadata"]["name"] = json!("theirs"));
    let answer = secrets.replace("theirs", &parameters, &secret(&taken)).await;
    assert_denied(&roles, "it takes another's", answer.map_err(|error| error.to_string()));
    let kept = of_administrator.get("theirs").await.expect("it is there").data.expect("it has values");
    assert!(kept.contains_key("password") && kept.len() == 1, "it was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_creates_a_token_that_has_expired_already() {
    let cluster = Cluster::exclusive().await;
    let namespace = cluster.namespace(&[]).await;
    let release = namespace.name();
    let rendered = render("tempmail", release, release, &[]).expect("Helm renders");
    cluster.apply(&rendered).await.expect("the API server accepts the policy");
    let objects = cluster.objects(namespace.name());
    let token = |expires_at: &str| format!("tenantRef: {{name: team}}, type: Live{expires_at}");
    let expired = token(", expiresAt: '2020-01-01T00:00:00Z'");

    let why = eventually("the policy is enforced", async || {
        let answer = objects.try_apply_with("ApiToken", "late", "", &expired).await;
        if answer.is_ok() {
            objects.delete("apitoken/late").await;
        }
        answer.err()
    })
    .await;
    assert!(why.contains("expiresAt is in the past"), "{why}");
    let posted = json!({"apiVersion": "tempmail.dev/v1alpha1", "kind": "ApiToken", "metadata": {"name": "late"},
        "spec": {"tenantRef": {"name": "team"}, "type": "Live", "expiresAt": "2020-01-01T00:00:00Z"}});
    let manifest = posted.to_string();
    let refused = cluster.apply(&manifest).await.expect_err("kubectl creates it");
    assert!(refused.stderr.contains("expiresAt is in the past"), "{}", refused.stderr);

    for (name, expires_at) in
        [("never", ""), ("none", ", expiresAt: null"), ("later", ", expiresAt: '2999-01-01T00:00:00Z'")]
    {
        let answer = objects.try_apply_with("ApiToken", name, "", &token(expires_at)).await;
        answer.unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    // The end of a token that exists may be now.
    objects.patch("apitoken/later", &json!({"spec": {"expiresAt": "2020-01-01T00:00:00Z"}})).await;

    remove_policies(&objects, release).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_deletes_a_tenant_that_is_protected() {
    let cluster = Cluster::exclusive().await;
    let namespace = cluster.namespace(&[]).await;
    let release = namespace.name();
    let rendered = render("tempmail", release, release, &[]).expect("Helm renders");
    cluster.apply(&rendered).await.expect("the API server accepts the policy");
    let objects = cluster.objects(release);
    for (name, spec) in [("kept", "deletionProtection: true"), ("other", "retentionHours: 1")] {
        objects.apply_object("Tenant", name, spec).await;
    }
    let try_delete = async |arguments: &[&str]| {
        let arguments = [&["delete", "tenants.tempmail.dev"], arguments].concat();
        cluster.kubectl(&arguments).await.map_err(|output| output.stderr)
    };
    eventually("the policy is enforced", || async {
        let why = try_delete(&["kept", "--dry-run=server"]).await.err()?;
        why.contains("set spec.deletionProtection to false first").then_some(())
    })
    .await;
    try_delete(&["kept"]).await.expect_err("it deletes a protected Tenant");
    let tenants: Api<Tenant> = Api::all(cluster.client());
    let all = tenants.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    let why = all.expect_err("it deletes a protected Tenant with all others").to_string();
    assert!(why.contains("protected against deletion"), "{why}");
    assert!(objects.get("tenant/kept").await["metadata"].get("deletionTimestamp").is_none());

    objects.patch("tenant/kept", &json!({"spec": {"deletionProtection": false}})).await;
    try_delete(&["kept"]).await.expect("it is not protected any longer");
    remove_policies(&objects, release).await;
}

/// Removes the policies of a release that later tests of the cluster would meet.
async fn remove_policies(objects: &Objects, release: &str) {
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        for policy in ["expired-tokens", "protected-tenants"] {
            objects.delete(&format!("{kind}/{release}-{policy}")).await;
        }
    }
}
