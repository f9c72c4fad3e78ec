//! Argo CD's health of objects: the script in `docs/gitops`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempmail_tests::kubernetes::{Cluster, Installation, Team};

/// Health and message that the script returns for an object.
fn health(object: &Value) -> (String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gitops/argocd-health.lua");
    let mut lua = Command::new("lua5.4");
    lua.arg("-").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut lua = lua.spawn().expect("`lua5.4` is there");
    // As in Argo CD, `obj` is the object, and the script returns its health.
    let program = format!(
        "obj = {}\nlocal answer = assert(loadfile(arg[1]))()\nprint(answer.status)\nprint(answer.message)\n",
        literal(object)
    );
    lua.stdin.take().expect("a pipe").write_all(program.as_bytes()).expect("Lua reads");
    let output = lua.wait_with_output().expect("our own child can be waited for");
    assert!(output.status.success(), "the script fails for {object}");
    let text = String::from_utf8(output.stdout).expect("the script writes UTF-8");
    let (status, message) = text.trim_end().split_once('\n').expect("two lines");
    (status.to_owned(), message.to_owned())
}

/// JSON as a literal of Lua; fields that are null are missing.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("{{{}}}", values.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("[{}] = {}", quoted(name), literal(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let bytes: String = text.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{bytes}\"")
}

fn object(generation: i64, observed: Option<i64>, conditions: &[(&str, &str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason, "message": "why"}))
        .collect();
    json!({
        "metadata": {"generation": generation},
        "status": {"observedGeneration": observed, "conditions": conditions},
    })
}

#[test]
fn argo_cd_shows_a_health_for_each_state() {
    let ready = ("Ready", "True", "Ready");
    let not_ready = ("Ready", "False", "WaitingForDns");
    for (conditions, expected) in [
        (&[ready][..], "Healthy"),
        (&[not_ready, ("Reconciling", "True", "WaitingForDns")], "Progressing"),
        (&[not_ready, ("Stalled", "True", "QuotaExceeded")], "Degraded"),
        // It stalled after it was ready.
        (&[ready, ("Stalled", "True", "RecordsLost")], "Degraded"),
        (&[ready, ("Reconciling", "True", "Rotating")], "Healthy"),
        (&[ready, ("QuotaExceeded", "True", "QuotaExceeded")], "Healthy"),
        (&[ready, ("Stalled", "False", "Ready"), ("Reconciling", "False", "Ready")], "Healthy"),
        (&[ready, ("ReconciliationPaused", "True", "Paused")], "Suspended"),
        (
            &[not_ready, ("Stalled", "True", "InvalidSpec"), ("ReconciliationPaused", "True", "Paused")],
            "Suspended",
        ),
        // Neither reconciling nor stalled: the operator will do nothing.
        (&[not_ready], "Degraded"),
        (&[("Ready", "Unknown", "Pending")], "Progressing"),
        (&[], "Progressing"),
    ] {
        assert_eq!(health(&object(3, Some(3), conditions)).0, expected, "{conditions:?}");
    }
}

#[test]
fn argo_cd_ignores_conditions_of_an_earlier_generation() {
    let stalled = &[("Ready", "False", "InvalidSpec"), ("Stalled", "True", "InvalidSpec")][..];
    for conditions in [&[("Ready", "True", "Ready")][..], stalled] {
        assert_eq!(health(&object(4, Some(3), conditions)).0, "Progressing");
        assert_eq!(health(&object(1, None, conditions)).0, "Progressing");
    }
    let paused = &[("Ready", "True", "Ready"), ("ReconciliationPaused", "True", "Paused")];
    assert_eq!(health(&object(4, Some(3), paused)).0, "Suspended", "it is paused");
}

#[test]
fn argo_cd_shows_objects_without_status_or_in_deletion_as_progressing() {
    assert_eq!(health(&json!({"metadata": {"generation": 1}})).0, "Progressing");
    assert_eq!(health(&json!({"metadata": {}, "status": {}})).0, "Progressing");
    let mut leaving = object(3, Some(3), &[("Ready", "True", "Ready")]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(health(&leaving).0, "Progressing");
}

#[test]
fn argo_cd_shows_the_message_of_the_condition() {
    let stalled = object(3, Some(3), &[("Ready", "False", "A"), ("Stalled", "True", "B")]);
    assert_eq!(health(&stalled).1, "B: why");
    assert_eq!(health(&object(3, Some(3), &[])).1, "Waiting for the operator.");
}

#[tokio::test(flavor = "multi_thread")]
async fn argo_cd_shows_the_health_of_objects_in_a_cluster() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    assert_eq!(health(&team.get(&team.tenant_object()).await).0, "Healthy");

    let spec = format!("domain: {}", team.domain("mail"));
    team.apply("CustomDomain", "waits", &spec).await;
    let (status, message) = health(&team.wait_for_condition("customdomain/waits", "Accepted").await);
    assert_eq!(status, "Progressing", "{message}");

    team.apply("CustomDomain", "refused", "domain: co.uk").await;
    let refused = team.wait_for_reason("customdomain/refused", "Ready", "ReservedDomain").await;
    let (status, message) = health(&refused);
    assert_eq!(status, "Degraded");
    assert!(message.starts_with("ReservedDomain: "), "{message}");

    team.annotate("customdomain/waits", "tempmail.dev/paused", "true").await;
    let paused = team.wait_for_condition("customdomain/waits", "ReconciliationPaused").await;
    assert_eq!(health(&paused).0, "Suspended");
}

#[tokio::test(flavor = "multi_thread")]
async fn argo_cd_shows_new_objects_as_progressing() {
    // A dry run: the operator never sees the object.
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    for (kind, spec) in [
        ("Webhook", "url: 'https://hooks.example.com/mail'"),
        ("ApiToken", "type: Live"),
        ("Mailbox", "address: signup@mail.example.com"),
        ("CustomDomain", "domain: mail.example.com"),
    ] {
        let spec = format!("tenantRef: {{name: missing}}, {spec}");
        let object = cluster.objects(namespace.name()).dry_run(kind, "one", &spec).await;
        assert!(object["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty()), "{kind}");
        assert_eq!(health(&object).0, "Progressing", "{kind}");
    }
}
