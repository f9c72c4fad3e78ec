//! The rules of the definitions: what the API server rejects, fills in and keeps. The tests use dry runs,
//! which it validates like writes.

mod rejected;
pub(super) mod selectors;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tempmail_tests::Cluster;
use uuid::Uuid;

/// The objects of a kind; of `namespace`, if the kind is in one.
fn api(cluster: &Cluster, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let specs = tempmail_crds::all().into_iter().map(|definition| definition.spec);
    let spec = specs.into_iter().find(|spec| spec.names.kind == kind).expect("a kind of tempmail");
    let kind = GroupVersionKind::gvk("tempmail.dev", "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    if spec.scope == "Cluster" {
        Api::all_with(cluster.client(), &resource)
    } else {
        Api::namespaced_with(cluster.client(), namespace, &resource)
    }
}

/// An object of a kind.
fn object(kind: &str, name: &str, spec: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "tempmail.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The required fields of a kind's spec.
fn minimal_spec(kind: &str) -> Value {
    let team = json!({"name": "team"});
    match kind {
        "Tenant" => json!({}),
        "SystemDomain" => json!({"domain": "inbox.example.com"}),
        "CustomDomain" => json!({"tenantRef": team, "domain": "mail.example.com"}),
        "Webhook" => json!({"tenantRef": team, "url": "https://hooks.example.com/mail"}),
        "ApiToken" => json!({"tenantRef": team, "type": "Pro"}),
        "Mailbox" => json!({"tenantRef": team, "address": "signup@mail.example.com"}),
        _ => unreachable!("each kind has a spec here"),
    }
}

/// A new object as the API server would store it, or its error message.
async fn dry_run(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<Value, String> {
    let parameters = PostParams { dry_run: true, field_manager: None };
    object_or_message(api.create(&parameters, object).await)
}

fn object_or_message(answer: kube::Result<DynamicObject>) -> Result<Value, String> {
    match answer {
        Ok(object) => Ok(serde_json::to_value(object).unwrap()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("the API server does not answer: {error}"),
    }
}

/// The required fields of a kind's spec with `changes` merged into them; `null` removes a field.
fn spec_with(kind: &str, changes: &Value) -> Value {
    let mut spec = minimal_spec(kind);
    for (key, value) in changes.as_object().unwrap() {
        spec.as_object_mut().unwrap().retain(|known, _| known != key);
        if !value.is_null() {
            spec[key] = value.clone();
        }
    }
    spec
}

#[tokio::test]
async fn accepts_valid_specs() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}.example", "b".repeat(43));
    assert_eq!(longest.len(), 243);
    let cases = [
        ("Tenant", json!({})),
        ("Tenant", json!({"retentionHours": 720, "suspended": true, "deletionPolicy": "Delete"})),
        ("Tenant", json!({"limits": {"mailboxes": 0}})),
        ("Tenant", json!({"allowedNamespaces": {}})),
        (
            "Tenant",
            json!({"allowedNamespaces": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]}}),
        ),
        ("SystemDomain", json!({})),
        ("CustomDomain", json!({})),
        ("CustomDomain", json!({"domain": longest})),
        ("CustomDomain", json!({"domain": "xn--bcher-kva.example"})),
        ("CustomDomain", json!({"domain": "a-1.b.example"})),
        ("Webhook", json!({})),
        ("Webhook", json!({"url": "https://hooks.example.com:8443/a?b=c@d"})),
        ("ApiToken", json!({"secret": {"name": "a.b-c"}, "expiresAt": "2030-01-01T00:00:00Z"})),
        ("Mailbox", json!({"address": "a.b-c_1@mail.example.com", "adoptionPolicy": "IfUnowned"})),
    ];
    for (kind, changes) in cases {
        let object = object(kind, "good", &spec_with(kind, &changes));
        dry_run(&api(cluster, kind, namespace.name()), &object)
            .await
            .unwrap_or_else(|why| panic!("{kind} {changes}: {why}"));
    }
}

#[tokio::test]
async fn fills_in_the_documented_defaults() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let cases = [
        (
            "Tenant",
            json!({"suspended": false, "retentionHours": 72, "deletionPolicy": "Retain",
                "deletionProtection": false, "limits": {
                "mailboxes": 100, "customDomains": 10, "webhooks": 1, "tokens": 20, "mailboxBytes": 52_428_800}}),
        ),
        ("SystemDomain", json!({"default": false, "sortOrder": 0, "sharedInboxes": true})),
        ("CustomDomain", json!({"adoptionPolicy": "IfUnowned", "deletionPolicy": "Delete"})),
        ("Webhook", json!({"events": ["email.received"]})),
        ("ApiToken", json!({"onSecretLoss": "Rotate"})),
        ("Mailbox", json!({"adoptionPolicy": "Never", "deletionPolicy": "Delete"})),
    ];
    for (kind, defaults) in cases {
        let made =
            dry_run(&api(cluster, kind, namespace.name()), &object(kind, "plain", &minimal_spec(kind))).await;
        let mut expected = minimal_spec(kind);
        expected.as_object_mut().unwrap().extend(defaults.as_object().unwrap().clone());
        assert_eq!(made.unwrap()["spec"], expected, "{kind}");
    }
    let api = api(cluster, "Tenant", "");
    let some = object("Tenant", "plain", &json!({"limits": {"mailboxes": 7}}));
    let limits = &dry_run(&api, &some).await.unwrap()["spec"]["limits"];
    assert_eq!((&limits["mailboxes"], &limits["tokens"]), (&json!(7), &json!(20)), "the rest is filled in");
}

#[tokio::test]
async fn starts_new_objects_with_unknown_conditions() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let kinds: [(&str, &[&str]); 6] = [
        ("Tenant", &["Ready", "Accepted"]),
        ("SystemDomain", &["Ready", "Accepted"]),
        ("CustomDomain", &["Ready", "Accepted", "Verified"]),
        ("Webhook", &["Ready", "Accepted", "Delivering"]),
        ("ApiToken", &["Ready", "Accepted"]),
        ("Mailbox", &["Ready", "Accepted"]),
    ];
    for (kind, types) in kinds {
        let mut forged = object(kind, "new", &minimal_spec(kind));
        forged.data["status"] = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        let made = dry_run(&api(cluster, kind, namespace.name()), &forged).await.unwrap();
        let conditions = made["status"]["conditions"].as_array().unwrap();
        let found: Vec<_> = conditions.iter().map(|one| one["type"].as_str().unwrap()).collect();
        assert_eq!(found, types, "{kind}");
        for condition in conditions {
            assert_eq!((&condition["status"], &condition["reason"]), (&json!("Unknown"), &json!("Pending")));
        }
    }
}

#[tokio::test]
async fn kubectl_rejects_an_unknown_field_and_the_api_server_drops_it() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: CustomDomain, metadata: {{name: odd, namespace: {}}}, \
         spec: {{tenantRef: {{name: team}}, domain: odd.example.com, domian: typo}}}}",
        namespace.name()
    );
    let refused = cluster.apply(&manifest).await.unwrap_err();
    assert!(refused.stderr.contains(r#"unknown field "spec.domian""#), "{}", refused.stderr);
    let odd = spec_with("CustomDomain", &json!({"domian": "typo"}));
    let api = api(cluster, "CustomDomain", namespace.name());
    let kept = dry_run(&api, &object("CustomDomain", "odd", &odd)).await.unwrap();
    assert!(kept["spec"].get("domian").is_none(), "{kept}");
}

#[tokio::test]
async fn selects_objects_by_domain_address_and_tenant() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    for (kind, key, one, other) in [
        ("CustomDomain", "domain", "one.example.com", "other.example.com"),
        ("Mailbox", "address", "one@mail.example.com", "other@mail.example.com"),
    ] {
        let api = api(cluster, kind, namespace.name());
        for (name, tenant, value) in [("one", "team-a", one), ("other", "team-b", other)] {
            let spec = spec_with(kind, &json!({"tenantRef": {"name": tenant}, key: value}));
            api.create(&PostParams::default(), &object(kind, name, &spec)).await.unwrap();
        }
        for selector in [format!("spec.{key}={one}"), "spec.tenantRef.name=team-a".to_owned()] {
            let found = api.list(&ListParams::default().fields(&selector)).await.unwrap();
            let names: Vec<_> = found.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
            assert_eq!(names, ["one"], "{kind} by {selector}");
        }
    }
}

#[tokio::test]
async fn keeps_the_conditions_of_other_field_managers() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let api = api(cluster, "CustomDomain", namespace.name());
    let made = object("CustomDomain", "shared", &minimal_spec("CustomDomain"));
    api.create(&PostParams::default(), &made).await.unwrap();
    let condition = |kind: &str| {
        json!({"apiVersion": "tempmail.dev/v1alpha1", "kind": "CustomDomain", "status": {"conditions": [
            {"type": kind, "status": "True", "reason": "Said", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ]}})
    };
    for (manager, kind) in [("auditor", "Audited"), ("billing", "Paid"), ("auditor", "Audited")] {
        let patch = Patch::Apply(condition(kind));
        api.patch_status("shared", &PatchParams::apply(manager).force(), &patch).await.unwrap();
    }
    let shown = api.get("shared").await.unwrap();
    let conditions = shown.data["status"]["conditions"].as_array().unwrap();
    for kind in ["Audited", "Paid"] {
        assert_eq!(conditions.iter().filter(|one| one["type"] == kind).count(), 1, "{conditions:?}");
    }
}

#[tokio::test]
async fn rejects_changes_of_immutable_fields_and_says_what_to_do() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let again = "delete the object and create it again";
    let secret = "the Secret's name can't be changed: delete the object and create it again";
    let another_team = json!({"tenantRef": {"name": "other"}});
    let cases = [
        ("SystemDomain", json!({"domain": "other.example.com"}), "create another SystemDomain"),
        ("CustomDomain", another_team.clone(), again),
        ("CustomDomain", json!({"domain": "other.example.com"}), "create another CustomDomain"),
        ("Webhook", another_team.clone(), again),
        ("Webhook", json!({"secret": {"name": "other"}}), secret),
        ("Webhook", json!({"secret": null}), secret),
        ("ApiToken", another_team.clone(), again),
        ("ApiToken", json!({"type": "Live"}), "create another ApiToken"),
        ("ApiToken", json!({"secret": {"name": "other"}}), secret),
        ("ApiToken", json!({"secret": null}), secret),
        ("Mailbox", another_team, again),
        ("Mailbox", json!({"address": "other@mail.example.com"}), "create another Mailbox"),
        ("Mailbox", json!({"secret": {"name": "other"}}), secret),
        ("Mailbox", json!({"secret": null}), secret),
    ];
    let name = format!("fixed-{}", Uuid::new_v4().simple());
    let has_secret = |kind: &str| ["Webhook", "ApiToken", "Mailbox"].contains(&kind);
    for kind in ["SystemDomain", "CustomDomain", "Webhook", "ApiToken", "Mailbox"] {
        let mut spec = minimal_spec(kind);
        if kind == "SystemDomain" {
            spec["domain"] = format!("{name}.example").into();
        } else if has_secret(kind) {
            spec["secret"] = json!({"name": "fixed"});
        }
        let api = api(cluster, kind, namespace.name());
        api.create(&PostParams::default(), &object(kind, &name, &spec)).await.unwrap();
        if has_secret(kind) {
            let plain = object(kind, "plain", &minimal_spec(kind));
            api.create(&PostParams::default(), &plain).await.unwrap();
            let why = dry_run_change(&api, "plain", &json!({"secret": {"name": "late"}})).await.unwrap_err();
            assert!(why.contains(secret), "{kind}: {why}");
        }
    }
    for (kind, changes, sentence) in cases {
        let answer = dry_run_change(&api(cluster, kind, namespace.name()), &name, &changes).await;
        let why = answer.expect_err(&format!("{kind} {changes} is accepted"));
        assert!(why.contains(sentence), "{kind} {changes}: {why}");
    }
    let domains = api(cluster, "SystemDomain", "");
    domains.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
}
#[tokio::test]
async fn naming_the_default_secret_is_no_change() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    for (kind, suffix) in [("Webhook", "webhook"), ("ApiToken", "token"), ("Mailbox", "mailbox")] {
        let api = api(cluster, kind, namespace.name());
        let named = |name: &str| json!({"secret": {"name": format!("{name}-{suffix}")}});
        let specs = [("plain", minimal_spec(kind)), ("named", spec_with(kind, &named("named")))];
        for (name, spec) in specs {
            api.create(&PostParams::default(), &object(kind, name, &spec)).await.unwrap();
            for changes in [named(name), json!({"secret": null})] {
                let answer = dry_run_change(&api, name, &changes).await;
                answer.unwrap_or_else(|why| panic!("{kind} {name} {changes}: {why}"));
            }
            let answer = dry_run_change(&api, name, &named("another")).await;
            answer.expect_err(&format!("{kind} {name} has another Secret"));
        }
    }
}

/// An object as the API server would store it with changes of its spec, or its error message.
async fn dry_run_change(api: &Api<DynamicObject>, name: &str, spec: &Value) -> Result<Value, String> {
    let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
    object_or_message(api.patch(name, &parameters, &Patch::Merge(json!({ "spec": spec }))).await)
}

/// Asserts that the properties of a schema are described, and those that are optional with their defaults.
fn assert_described(path: &str, schema: &Value, with_defaults: bool) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let description = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        assert!(!description.is_empty(), "{path} has no description");
        if with_defaults && !required.contains(&name.as_str()) {
            assert!(description.contains("Defaults to "), "{path}: {description}");
        }
        assert_described(&path, property, with_defaults);
        assert_described(&path, &property["items"], with_defaults);
    }
}

#[test]
fn describes_every_field_and_its_default() {
    let definitions = serde_json::to_value(tempmail_crds::all()).unwrap();
    for definition in definitions.as_array().unwrap() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert_described(&format!("{kind}.spec"), &schema["spec"], true);
        assert_described(&format!("{kind}.status"), &schema["status"], false);
    }
}

#[test]
fn lists_every_kind_with_the_reason_why_an_object_is_not_ready() {
    for definition in tempmail_crds::all() {
        let columns = definition.spec.versions[0].additional_printer_columns.as_deref().unwrap_or_default();
        let shown = columns.iter().filter(|column| column.priority.unwrap_or_default() == 0);
        let names: Vec<&str> = shown.map(|column| column.name.as_str()).collect();
        assert!(names.ends_with(&["Ready", "Reason", "Age"]), "{names:?}");
    }
}
