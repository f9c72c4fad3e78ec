//! Label selectors in `spec.allowedNamespaces`: one that Kubernetes refuses elsewhere is refused here, too,
//! by the API server, and by an operator whose definitions let it pass.

use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::{Team, condition, condition_message, condition_reason, unique_name};
use tempmail_tests::wait::eventually;

use super::{api, dry_run, object};

/// Selectors, and whether they are valid.
fn cases() -> Vec<(Value, bool)> {
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    let (prefix, long_prefix) = (["abc"; 63].join("."), ["abc"; 64].join("."));
    let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    let exists = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let one_of = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]});
    let without_values =
        |operator: &str| json!({"matchExpressions": [{"key": "team", "operator": operator}]});
    let second = |values: Value| {
        json!({"matchLabels": {"team": "shop"}, "matchExpressions": [
            {"key": "team", "operator": "Exists"},
            {"key": "tier", "operator": "NotIn", "values": values},
        ]})
    };
    vec![
        (json!({}), true),
        (labels("team", "shop"), true),
        (labels("example.com/team", ""), true),
        (labels("-team", "shop"), false),
        (labels("team", "-shop"), false),
        (labels("a/b/c", "shop"), false),
        (labels("Example.com/team", "shop"), false),
        (exists("team"), true),
        (exists("A.b_c-1"), true),
        (exists(&longest), true),
        (exists(&format!("{prefix}/{longest}")), true),
        (exists(""), false),
        (exists("a b"), false),
        (exists("/team"), false),
        (exists("example.com/"), false),
        (exists("a..b/team"), false),
        (exists(&too_long), false),
        (exists(&format!("{long_prefix}/team")), false),
        (one_of("In", json!(["shop"])), true),
        (one_of("In", json!([""])), true),
        (one_of("In", json!([longest, "A.b_c-1"])), true),
        (one_of("In", json!([])), false),
        (one_of("In", json!(["a b"])), false),
        (one_of("In", json!(["shop", too_long])), false),
        (one_of("In", json!(["sh\u{f6}p"])), false),
        (one_of("NotIn", json!(["shop"])), true),
        (one_of("NotIn", json!([])), false),
        (one_of("NotIn", json!([".shop"])), false),
        (one_of("Exists", json!([])), true),
        (one_of("Exists", json!(["shop"])), false),
        (one_of("DoesNotExist", json!([])), true),
        (one_of("DoesNotExist", json!(["shop"])), false),
        (one_of("Near", json!(["shop"])), false),
        (one_of("in", json!(["shop"])), false),
        (without_values("In"), false),
        (without_values("NotIn"), false),
        (without_values("DoesNotExist"), true),
        (second(json!(["gold"])), true),
        (second(json!([])), false),
    ]
}

#[tokio::test]
async fn accepts_the_selectors_that_kubernetes_accepts() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let policies: Api<NetworkPolicy> = namespace.api();
    let tenants = api(cluster, "Tenant", "");
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    for (selector, is_valid) in cases() {
        let policy = json!({"metadata": {"name": "selector"}, "spec": {"podSelector": selector}});
        let policy: NetworkPolicy = serde_json::from_value(policy).unwrap();
        let judged = policies.create(&parameters, &policy).await;
        assert_eq!(judged.is_ok(), is_valid, "Kubernetes judges otherwise: {selector}");
        let tenant = object("Tenant", "selector", &json!({"allowedNamespaces": selector}));
        let answer = dry_run(&tenants, &tenant).await;
        assert_eq!(answer.is_ok(), is_valid, "{selector}: {answer:?}");
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_selector() {
    let cluster = Cluster::shared().await;
    let tenants = api(cluster, "Tenant", "");
    for (selector, sentence) in [
        (
            json!({"matchExpressions": [{"key": "team", "operator": "NotIn"}]}),
            "In and NotIn need values, Exists and DoesNotExist take none",
        ),
        (
            json!({"matchExpressions": [{"key": "a b", "operator": "Exists"}]}),
            "key is a label key, such as team or example.com/team",
        ),
        (json!({"matchLabels": {"a b": "c"}}), "a key of matchLabels is a label key"),
        (json!({"matchLabels": {"a": "b c"}}), "not a label's value: letters, digits, '-', '_' and '.'"),
    ] {
        let tenant = object("Tenant", "selector", &json!({"allowedNamespaces": selector}));
        let why = dry_run(&tenants, &tenant).await.expect_err("it is accepted");
        assert!(why.contains(sentence), "{why}");
    }
}

/// Asserts that the operator judges them alike, in a cluster whose definitions let all of them pass.
pub(crate) async fn judges_selectors_as_kubernetes_does(team: &Team) {
    for (selector, is_valid) in cases() {
        let name = unique_name("selector");
        let spec = format!("allowedNamespaces: {selector}");
        eventually("the validation is removed", || async {
            team.try_apply_with("Tenant", &name, "", &spec).await.ok()
        })
        .await;
        let tenant = format!("tenant/{name}");
        let is_judged = |shown: &Value| {
            condition(shown, "Ready").is_some_and(|condition| condition["reason"] != "Pending")
        };
        let shown = team.wait_until(&tenant, "a verdict", is_judged).await;
        let reason = if is_valid { "Ready" } else { "InvalidSpec" };
        assert_eq!(condition_reason(&shown, "Ready"), reason, "{selector}");
        if !is_valid {
            let message = condition_message(&shown, "Ready");
            assert!(message.contains("spec.allowedNamespaces is invalid"), "{message}");
        }
    }
}

/// Asserts that a selector that is invalid selects nothing, though it would match.
pub(crate) async fn grants_nothing_by_an_invalid_selector(team: &Team) {
    let name = unique_name("selector");
    let everyone = "allowedNamespaces: {matchExpressions: [{key: team, operator: NotIn}]}";
    team.apply_object("Tenant", &name, everyone).await;
    team.apply_object("ApiToken", "refused", &format!("tenantRef: {{name: {name}}}, type: Live")).await;
    team.wait_for_reason("apitoken/refused", "Accepted", "TenantRefNotPermitted").await;
}
