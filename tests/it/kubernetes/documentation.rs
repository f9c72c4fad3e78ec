//! `docs/kubernetes.md`: its manifests apply, and its tables are complete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tempmail_crds::annotation;
use tempmail_operator::{ConditionType, Reason};
use tempmail_tests::kubernetes::{Team, program};
use tempmail_tests::{Cluster, Installation};

const DOCUMENT: &str = include_str!("../../../docs/kubernetes.md");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");
const README: &str = include_str!("../../../README.md");

/// API groups of other projects, whose kinds the test cluster does not have.
const OTHERS: [&str; 3] = ["argoproj.io/", "kustomize.toolkit.fluxcd.io/", "source.toolkit.fluxcd.io/"];

/// The YAML blocks of a document, in order.
fn blocks(document: &str) -> Vec<&str> {
    let fenced = document.split("\n```yaml\n").skip(1);
    fenced.map(|rest| rest.split_once("\n```").expect("a block ends").0).collect()
}

/// The block of shell commands of `docs/kubernetes.md` that has this text.
fn commands(text: &str) -> &'static str {
    commands_of(DOCUMENT, text)
}

/// The block of shell commands of a document that has this text.
pub(super) fn commands_of(document: &'static str, text: &str) -> &'static str {
    let fenced = document.split("\n```sh\n").skip(1);
    let mut blocks = fenced.map(|rest| rest.split_once("\n```").expect("a block ends").0);
    blocks.find(|block| block.contains(text)).expect("the block is there")
}

/// Runs commands of a document with `kubectl` and `helm` as the administrator, and returns what they print.
pub(super) fn run(cluster: &Cluster, commands: &str) -> String {
    let folder = |name| program(name).parent().expect("a program is in a folder").to_owned();
    let path = std::env::var_os("PATH").expect("there is a path");
    let folders = [folder("kubectl"), folder("helm")].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders);
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", commands]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    bash.env("PATH", path.expect("folders have no colon")).env("KUBECONFIG", cluster.kubeconfig());
    let output = bash.output().expect("bash starts");
    assert!(output.status.success(), "{commands}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("kubectl writes UTF-8")
}

/// Documents of a block.
fn objects(block: &str) -> impl Iterator<Item = &str> {
    block.split("\n---\n").map(str::trim).filter(|text| !text.is_empty())
}

fn is_of_others(object: &str) -> bool {
    OTHERS.iter().any(|group| object.contains(&format!("apiVersion: {group}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_every_manifest_of_the_documentation() {
    let cluster = Cluster::shared().await;
    let all: Vec<&str> = [DOCUMENT, README].into_iter().flat_map(blocks).collect();
    assert!(all.len() > 8, "the examples are there");
    // A dry run needs the namespaces of the objects, too.
    let namespaces =
        all.iter().copied().flat_map(objects).filter(|object| object.contains("kind: Namespace\n"));
    for namespace in namespaces {
        cluster.apply(namespace).await.expect("the API server accepts a namespace");
    }
    let (others, own): (Vec<&str>, Vec<&str>) =
        all.iter().copied().flat_map(objects).partition(|object| is_of_others(object));
    let named = dry_run(cluster, &["annotate", "--local", "seen=true"], &others).await;
    assert_eq!(named.lines().count(), others.len(), "{named}");
    let named = dry_run(cluster, &["apply", "--dry-run=server"], &own).await;
    for kind in ["tenant", "systemdomain", "customdomain", "webhook", "apitoken", "mailbox"] {
        assert!(
            named.contains(&format!("{kind}.tempmail.dev/")),
            "there is no example of a {kind}:\n{named}"
        );
    }
}

/// Names of the objects that `kubectl` accepts, a line each.
async fn dry_run(cluster: &Cluster, command: &[&str], objects: &[&str]) -> String {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file can be made");
    std::fs::write(file.path(), objects.join("\n---\n")).expect("a file can be written");
    let path = file.path().to_str().expect("the path is UTF-8");
    let arguments = [command, &["-o", "name", "-f", path]].concat();
    cluster.kubectl(&arguments).await.expect("every object is accepted")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_quickstart_print_the_records_to_publish() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("mail");
    team.apply("CustomDomain", "mail", &format!("domain: {domain}")).await;
    let commands = commands("jsonpath='{range .status.verification.records[*]}");
    let commands = commands.strip_prefix("kubectl apply -f tempmail.yaml\n").expect("it begins so");
    let printed =
        run(installation.cluster, &commands.replace("-n team-a", &format!("-n {}", team.namespace.name())));
    assert!(printed.contains(&format!("TXT\t_tempmail.{domain}\ttempmail-verify=")), "{printed}");
    assert!(printed.contains(&format!("MX\t{domain}\t")), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_for_argo_cd_adds_a_script_for_each_kind() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let existing = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: argocd-cm, namespace: {}}}, data: {{url: theirs}}}}",
        namespace.name()
    );
    cluster.apply(&existing).await.expect("the API server accepts a ConfigMap");
    run(cluster, &commands("argocd-cm").replace("-n argocd", &format!("-n {}", namespace.name())));
    let settings: Api<ConfigMap> = namespace.api();
    let settings = settings.get("argocd-cm").await.unwrap().data.unwrap();
    let script = include_str!("../../../docs/gitops/argocd-health.lua");
    for kind in ["Tenant", "SystemDomain", "CustomDomain", "Webhook", "ApiToken", "Mailbox"] {
        let key = format!("resource.customizations.health.tempmail.dev_{kind}");
        assert_eq!(settings.get(&key).map(String::as_str), Some(script), "{kind}");
    }
    assert_eq!(settings["url"], "theirs");
}

#[test]
fn the_readme_and_the_quickstart_have_the_same_manifest() {
    let quickstart = *blocks(DOCUMENT).first().expect("the quickstart has a manifest");
    assert!(blocks(README).contains(&quickstart), "README.md has another manifest than docs/kubernetes.md");
}

#[test]
fn the_table_of_reasons_has_the_messages_that_the_operator_writes() {
    let table = include_str!("../../../docs/reasons.md");
    assert!(tempmail_operator::reason_reference() == table, "stale: cargo run -- reasons > docs/reasons.md");
    for reason in Reason::ALL {
        let event = if reason.is_warning() { "Warning" } else { "Normal" };
        assert!(table.contains(&format!("\n| `{}` | {event} | ", reason.as_str())), "{reason:?}");
    }
}

#[test]
fn every_condition_and_annotation_is_documented() {
    for kind in ConditionType::ALL {
        let row = format!("| `{}` |", kind.as_str());
        assert!(DOCUMENT.contains(&row), "docs/kubernetes.md does not describe the condition {row}");
    }
    for name in [
        annotation::VERIFY,
        annotation::ROTATE,
        annotation::REENABLE,
        annotation::PAUSED,
        annotation::ADOPT_TENANT,
    ] {
        let row = format!("| `{name}` |");
        assert!(DOCUMENT.contains(&row), "docs/kubernetes.md does not describe the annotation {row}");
    }
}

#[test]
fn every_metric_of_the_operator_is_documented() {
    const PREFIX: &str = "tempmail_operator_";
    let mut names = BTreeSet::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../operator/src")) {
        let text = std::fs::read_to_string(file).expect("source is UTF-8");
        for (at, _) in text.match_indices(&format!("\"{PREFIX}")) {
            let name = text[at + 1..].split('"').next().expect("there is something");
            names.insert(name.to_owned());
        }
    }
    assert!(names.len() > 4, "the metrics are found");
    let missing: Vec<_> = names.iter().filter(|name| !OPERATIONS.contains(&format!("`{name}"))).collect();
    assert!(missing.is_empty(), "docs/operations.md lacks {missing:#?}");
    let quoted = format!("`{PREFIX}");
    for (at, _) in OPERATIONS.match_indices(&quoted) {
        let name = OPERATIONS[at + 1..].split(['`', '{']).next().expect("there is something");
        assert!(names.contains(name), "docs/operations.md lists {name}, which the operator does not have");
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn the_reference_of_the_kinds_is_up_to_date() {
    let reference = include_str!("../../../docs/api-reference.md");
    assert!(
        tempmail_crds::api_reference() == reference,
        "stale: cargo run -- api-reference > docs/api-reference.md"
    );
}

#[test]
fn there_is_advice_for_every_reason() {
    let advice = include_str!("../../../docs/troubleshooting-kubernetes.md");
    let headings: BTreeSet<&str> = advice.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let missing: Vec<_> = reasons.symmetric_difference(&headings).collect();
    assert!(missing.is_empty(), "docs/troubleshooting-kubernetes.md, missing or surplus: {missing:?}");
}
