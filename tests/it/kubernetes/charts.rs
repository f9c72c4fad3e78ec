//! The charts: what they render, and the definitions that they carry.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::program;

/// The annotation with which Helm keeps an object that its chart does not have any longer.
const KEEP: &str = "  annotations:\n    helm.sh/resource-policy: keep\n";

/// The version that Helm assumes without a cluster.
const KUBE_VERSION: &str = "1.34.2";

/// The comment that Helm writes before each document.
const SOURCE: &str = "# Source: ";

fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts").join(name)
}

/// `helm template` of a chart, with these further arguments.
///
/// # Errors
/// Helm refuses, and says why.
pub(super) fn render(
    name: &str,
    release: &str,
    namespace: &str,
    arguments: &[&str],
) -> Result<String, String> {
    let mut helm = Command::new(program("helm"));
    helm.args(["template", release]).arg(chart(name)).args(["--namespace", namespace]);
    helm.args(["--kube-version", KUBE_VERSION]).args(arguments);
    let output = helm.output().expect("`helm` is installed");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The documents of a stream, without Helm's comments.
fn documents(yaml: &str) -> Vec<String> {
    let is_ours = |line: &&str| !line.starts_with(SOURCE);
    let document = |text: &str| text.lines().filter(is_ours).collect::<Vec<_>>().join("\n").trim().to_owned();
    format!("\n{yaml}").split("\n---\n").map(document).filter(|text| !text.is_empty()).collect()
}

#[test]
fn the_chart_has_the_definitions_that_the_program_prints() {
    let carried = std::fs::read_to_string(chart("tempmail-crds").join("crds.yaml")).unwrap();
    let printed = tempmail_crds::manifests().unwrap();
    assert!(carried == printed, "stale: cargo run -- crds > charts/tempmail-crds/crds.yaml");
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_keeps_the_definitions_of_kinds_when_the_chart_is_removed() {
    let rendered = render("tempmail-crds", "kinds", "default", &[]).unwrap();
    let (rendered, printed) = (documents(&rendered), documents(&tempmail_crds::manifests().unwrap()));
    assert_eq!(rendered.len(), 6);
    for (rendered, printed) in rendered.iter().zip(&printed) {
        assert_eq!(rendered.matches(KEEP).count(), 1, "one definition is not kept:\n{rendered}");
        assert_eq!(rendered.replacen(KEEP, "", 1), *printed);
    }
    let cluster = Cluster::shared().await;
    cluster.apply(&rendered.join("\n---\n")).await.expect("the API server accepts the definitions");
}

#[test]
fn both_charts_pass_helm_lint() {
    for name in ["tempmail", "tempmail-crds"] {
        let output = Command::new(program("helm")).args(["lint", "--strict"]).arg(chart(name)).output();
        let output = output.expect("`helm` is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn the_charts_reject_unknown_values() {
    for wrong in [
        "operator.leaseNames=other",
        "watchNamespaces={a}",
        "operator.watchNamespaces={Upper}",
        "operator.watchNamespaces={a,a}",
        "admissionPolicies.operatorSecrets=maybe",
        "operator.leaseName=Upper",
        "roles.aggregate=maybe",
    ] {
        let refused = render("tempmail", "mail", "default", &["--set", wrong]);
        let why = refused.expect_err("the schema refuses");
        assert!(why.contains("values don't meet the specifications of the schema"), "{wrong}: {why}");
    }
    assert!(render("tempmail-crds", "kinds", "default", &["--set", "keep=false"]).is_err());
}

#[test]
fn the_charts_reject_kubernetes_before_1_33() {
    for name in ["tempmail", "tempmail-crds"] {
        let refused = render(name, "mail", "default", &["--kube-version", "1.32.9"]);
        assert!(refused.expect_err("it is too old").contains("1.33.0-0"), "{name}");
        render(name, "mail", "default", &["--kube-version", "1.33.1-distribution.2"]).unwrap();
    }
}

#[test]
fn the_roles_follow_the_values() {
    let of = |arguments: &[&str]| render("tempmail", "mail", "default", arguments).unwrap();
    assert!(of(&[]).contains("\"mail-keys\""));
    let given = of(&["--set", "keys.existingSecret=ours"]);
    assert!(!given.contains("keys"), "the operator does not read keys that were given:\n{given}");
    assert!(of(&["--set", "operator.leaseName=other"]).contains("resourceNames: [\"other\"]"));
    assert!(!of(&["--set", "roles.aggregate=false"]).contains("aggregate-to-"));
    assert!(of(&["--set", "operator.serviceAccount.annotations.colour=blue"]).contains("colour: blue"));
}

#[test]
fn an_operator_of_named_namespaces_has_a_role_in_each() {
    let of = |arguments: &[&str]| render("tempmail", "mail", "home", arguments).unwrap();
    let whole = of(&[]);
    assert!(!whole.contains("operator-objects") && !whole.contains("WATCH_NAMESPACES"), "{whole}");
    let named = of(&["--set", "operator.watchNamespaces={team-a,team-b}"]);
    assert!(named.contains("name: TEMPMAIL_OPERATOR__WATCH_NAMESPACES, value: \"team-a,team-b\""), "{named}");
    for namespace in ["team-a", "team-b"] {
        let place = format!("name: mail-operator-objects\n  namespace: {namespace}\n");
        assert_eq!(named.matches(&place).count(), 2, "a Role and its binding in {namespace}:\n{named}");
    }
    let documents = documents(&named);
    let role = "kind: ClusterRole\nmetadata:\n  name: mail-operator\n";
    let role = documents.iter().find(|text| text.contains(role)).expect("there is one");
    assert!(!role.contains("secrets"), "{role}");
}

#[test]
fn the_admission_policies_follow_the_values() {
    let of = |arguments: &[&str]| render("tempmail", "mail", "home", arguments).unwrap();
    let count = |rendered: &str| rendered.matches("kind: ValidatingAdmissionPolicy\n").count();
    assert_eq!(count(&of(&[])), 3);
    for (value, policy) in [
        ("operatorSecrets", "mail-operator-secrets"),
        ("expiredTokens", "mail-expired-tokens"),
        ("protectedTenants", "mail-protected-tenants"),
    ] {
        let rest = of(&["--set", &format!("admissionPolicies.{value}=false")]);
        assert!(count(&rest) == 2 && !rest.contains(policy), "{value}");
    }
}
