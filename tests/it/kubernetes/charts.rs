//! The charts: what they render, and that the kinds are those of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempmail_tests::Cluster;
use tempmail_tests::kubernetes::program;

/// What makes Helm keep an object that its chart no longer has.
const KEEP: &str = "  annotations:\n    helm.sh/resource-policy: keep\n";

/// Helm takes a cluster that it does not reach for this one, whatever it was built with.
const KUBE_VERSION: &str = "1.34.2";

/// What Helm puts before each document.
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
    let output = helm.output().expect("`helm` is there");
    let text = |octets| String::from_utf8(octets).expect("it writes UTF-8");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The documents of a stream, without what Helm says of them.
fn documents(yaml: &str) -> Vec<String> {
    let is_ours = |line: &&str| !line.starts_with(SOURCE);
    let document = |text: &str| text.lines().filter(is_ours).collect::<Vec<_>>().join("\n").trim().to_owned();
    format!("\n{yaml}").split("\n---\n").map(document).filter(|text| !text.is_empty()).collect()
}

#[test]
fn the_kinds_of_the_chart_are_those_that_the_program_prints() {
    let carried = std::fs::read_to_string(chart("tempmail-crds").join("crds.yaml")).unwrap();
    let printed = tempmail_crds::manifests().unwrap();
    assert!(carried == printed, "stale: cargo run -- crds > charts/tempmail-crds/crds.yaml");
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_keeps_the_kinds_and_changes_nothing_else() {
    let rendered = render("tempmail-crds", "kinds", "default", &[]).unwrap();
    let (rendered, printed) = (documents(&rendered), documents(&tempmail_crds::manifests().unwrap()));
    assert_eq!(rendered.len(), 6);
    for (rendered, printed) in rendered.iter().zip(&printed) {
        assert_eq!(rendered.matches(KEEP).count(), 1, "one definition is not kept:\n{rendered}");
        assert_eq!(rendered.replacen(KEEP, "", 1), *printed);
    }
    let cluster = Cluster::shared().await;
    cluster.apply(&rendered.join("\n---\n")).await.expect("the API server takes the definitions");
}

#[test]
fn both_charts_pass_the_linter() {
    for name in ["tempmail", "tempmail-crds"] {
        let output = Command::new(program("helm")).args(["lint", "--strict"]).arg(chart(name)).output();
        let output = output.expect("`helm` is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_value_that_the_chart_does_not_know_is_refused() {
    for wrong in [
        "operator.leaseNames=other",
        "watchNamespaces={a}",
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
fn an_older_cluster_is_refused() {
    for name in ["tempmail", "tempmail-crds"] {
        let refused = render(name, "mail", "default", &["--kube-version", "1.32.9"]);
        assert!(refused.expect_err("it is too old").contains("1.33.0-0"), "{name}");
        render(name, "mail", "default", &["--kube-version", "1.33.1-distribution.2"]).unwrap();
    }
}

#[test]
fn values_reach_the_roles() {
    let of = |arguments: &[&str]| render("tempmail", "mail", "default", arguments).unwrap();
    assert!(of(&[]).contains("\"mail-keys\""));
    let given = of(&["--set", "keys.existingSecret=ours"]);
    assert!(!given.contains("keys"), "the operator does not read keys that were given:\n{given}");
    assert!(of(&["--set", "operator.leaseName=other"]).contains("resourceNames: [\"other\"]"));
    assert!(!of(&["--set", "roles.aggregate=false"]).contains("aggregate-to-"));
    assert!(of(&["--set", "operator.serviceAccount.annotations.colour=blue"]).contains("colour: blue"));
}
