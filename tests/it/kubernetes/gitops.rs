//! What Argo CD takes the health of objects for: the script of `docs/gitops`, run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempmail_tests::World;
use tempmail_tests::kubernetes::Team;

/// Health and message of an object.
fn health(object: &Value) -> (String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gitops/argocd-health.lua");
    let mut lua = Command::new("lua5.4");
    lua.arg("-").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut lua = lua.spawn().expect("`lua5.4` is there");
    // As in Argo CD, `obj` is the object and the script returns the answer.
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

/// JSON as Lua writes it; what is null is not there.
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
    let octets: String = text.bytes().map(|octet| format!("\\x{octet:02x}")).collect();
    format!("\"{octets}\"")
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
fn each_state_has_its_health() {
    let ready = ("Ready", "True", "Ready");
    let not_ready = ("Ready", "False", "WaitingForDns");
    for (conditions, expected) in [
        (&[ready][..], "Healthy"),
        (&[not_ready, ("Reconciling", "True", "WaitingForDns")], "Progressing"),
        (&[not_ready, ("Stalled", "True", "QuotaExceeded")], "Degraded"),
        // What became of it is worth more than what it was.
        (&[ready, ("Stalled", "True", "RecordsLost")], "Degraded"),
        (&[ready, ("Reconciling", "True", "Rotating")], "Healthy"),
        (&[ready, ("QuotaExceeded", "True", "QuotaExceeded")], "Healthy"),
        (&[ready, ("Stalled", "False", "Ready"), ("Reconciling", "False", "Ready")], "Healthy"),
        (&[ready, ("ReconciliationPaused", "True", "Paused")], "Suspended"),
        (
            &[not_ready, ("Stalled", "True", "InvalidSpec"), ("ReconciliationPaused", "True", "Paused")],
            "Suspended",
        ),
        // Neither in progress nor stalled: nobody will do anything.
        (&[not_ready], "Degraded"),
        (&[("Ready", "Unknown", "Pending")], "Progressing"),
        (&[], "Progressing"),
    ] {
        assert_eq!(health(&object(3, Some(3), conditions)).0, expected, "{conditions:?}");
    }
}

#[test]
fn what_is_told_of_a_former_spec_counts_for_nothing() {
    let stalled = &[("Ready", "False", "InvalidSpec"), ("Stalled", "True", "InvalidSpec")][..];
    for conditions in [&[("Ready", "True", "Ready")][..], stalled] {
        assert_eq!(health(&object(4, Some(3), conditions)).0, "Progressing");
        assert_eq!(health(&object(1, None, conditions)).0, "Progressing");
    }
    let paused = &[("Ready", "True", "Ready"), ("ReconciliationPaused", "True", "Paused")];
    assert_eq!(health(&object(4, Some(3), paused)).0, "Suspended", "it stays so until it is not paused");
}

#[test]
fn an_object_without_status_or_on_its_way_out_is_in_progress() {
    assert_eq!(health(&json!({"metadata": {"generation": 1}})).0, "Progressing");
    assert_eq!(health(&json!({"metadata": {}, "status": {}})).0, "Progressing");
    let mut leaving = object(3, Some(3), &[("Ready", "True", "Ready")]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(health(&leaving).0, "Progressing");
}

#[test]
fn the_message_is_the_conditions() {
    let stalled = object(3, Some(3), &[("Ready", "False", "A"), ("Stalled", "True", "B")]);
    assert_eq!(health(&stalled).1, "B: why");
    assert_eq!(health(&object(3, Some(3), &[])).1, "Waiting for the operator.");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_cluster_have_the_health_that_they_should() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let tenant = world.cluster.kubectl(&["get", "tenant", &team.tenant, "-o", "json"]).await.unwrap();
    assert_eq!(health(&serde_json::from_str(&tenant).unwrap()).0, "Healthy");

    let spec = format!("domain: {}", team.domain("mail"));
    team.apply("CustomDomain", "waits", &spec).await.expect("it is taken");
    let (status, message) = health(&team.wait("customdomain/waits", "Accepted").await);
    assert_eq!(status, "Progressing", "{message}");

    team.apply("CustomDomain", "refused", "domain: co.uk").await.expect("it is taken");
    let refused = team.wait_for_reason("customdomain/refused", "Ready", "ReservedDomain").await;
    let (status, message) = health(&refused);
    assert_eq!(status, "Degraded");
    assert!(message.starts_with("ReservedDomain: "), "{message}");

    team.kubectl(&["annotate", "customdomain/waits", "tempmail.dev/paused=true"]).await.unwrap();
    let paused = team.wait("customdomain/waits", "ReconciliationPaused").await;
    assert_eq!(health(&paused).0, "Suspended");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_nobody_looked_at_yet_is_in_progress() {
    let cluster = tempmail_tests::Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    for (kind, spec) in [
        ("Webhook", "url: 'https://hooks.example.com/mail'"),
        ("ApiToken", "type: Live"),
        ("Mailbox", "address: signup@mail.example.com"),
        ("CustomDomain", "domain: mail.example.com"),
    ] {
        let manifest = format!(
            "{{apiVersion: tempmail.dev/v1alpha1, kind: {kind}, metadata: {{name: one, namespace: {}}}, \
             spec: {{tenantRef: {{name: nobody}}, {spec}}}}}",
            namespace.name()
        );
        let file = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file can be made");
        std::fs::write(file.path(), manifest).expect("a file can be written");
        let path = file.path().to_str().expect("the path is UTF-8");
        let shown = cluster.kubectl(&["create", "--dry-run=server", "-o", "json", "-f", path]).await.unwrap();
        let object: Value = serde_json::from_str(&shown).unwrap();
        assert!(object["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty()), "{kind}");
        assert_eq!(health(&object).0, "Progressing", "{kind}");
    }
}
