//! The examples of the documentation work: that of the README, and all of `docs/kubernetes.md`.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Method;
use tempmail_tests::kubernetes::{
    Cluster, Objects, SharedInstallation, program, unique_name, verification_records,
};
use tempmail_tests::{Installation, Receiver, binary};

const README: &str = include_str!("../../../README.md");

/// The manifests of the README.
fn example() -> &'static str {
    let (_, after) = README.split_once("## In Kubernetes").expect("the heading is there");
    let (_, block) = after.split_once("```yaml\n").expect("the manifests are there");
    block.split("```").next().expect("they end")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_readme_receives_mail_and_webhooks() {
    let installation = Installation::shared().await;
    let receiver = Receiver::start().await;
    // Other tests use the same cluster and database.
    let namespace = unique_name("team");
    let domain = format!("mail.{namespace}.example");
    let manifests = example()
        .replace("team-a", &namespace)
        .replace("name: acme", &format!("name: acme-{namespace}"))
        .replace("mail.example.com", &domain)
        .replace("https://hooks.example.com/mail", &receiver.url_for_host("LOCALHOST"));
    installation.cluster.apply(&manifests).await.expect("the API server accepts the manifests");
    let objects = installation.cluster.objects(&namespace);
    publish_records(installation, &objects, &domain).await;
    for object in ["webhook/ci", "apitoken/ci", "mailbox/signup"] {
        objects.wait_for_condition(object, "Ready").await;
    }

    let address = format!("signup@{domain}");
    installation.app.deliver(&address, "Hello", "").await;
    let live = objects.secret_value("ci-token", "token").await;
    let path = format!("/v1/inbox/{address}");
    let inbox = installation.request(Method::GET, &path).live(&live).send().await.expect(200);
    assert_eq!(inbox["emails"][0]["subject"], "Hello");

    let secret = objects.secret_value("ci-webhook", "secret").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(&secret));

    assert_eq!(objects.secret_value("signup-mailbox", "address").await, address);
    let password = objects.secret_value("signup-mailbox", "password").await;
    installation.sign_in(&address, &password).await.expect(200);

    objects.start_deletion(&format!("namespace/{namespace}")).await;
}

/// Publishes the records of the example's domain, and waits until they are found.
async fn publish_records(installation: &SharedInstallation, objects: &Objects, domain: &str) {
    let shown = objects.wait_for_condition("customdomain/mail", "Accepted").await;
    let (token, mx_host) = verification_records(&shown);
    installation.dns.domain(domain, 1).await;
    installation.dns.set_verified(domain, &token, &mx_host).await;
    objects.wait_for_condition("customdomain/mail", "Verified").await;
}

const DOCUMENT: &str = include_str!("../../../docs/kubernetes.md");
/// Why a block may be skipped.
const REASONS: [&str; 2] = ["foreign software", "hours"];
/// Blocks that are skipped, so that one more is a decision.
const SKIPPED: usize = 9;
/// The domain and the address of the document.
const DOMAIN: &str = "mail.example.com";
const ADDRESS: &str = "signup@mail.example.com";
/// Where the document expects the HTTP interface.
const BASE_URL: &str = "https://tempmail.example.com";
/// The kind of another operator, and an object with the name of a Tenant of the document.
const OTHER_KIND: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tenants.another.example.com}
spec:
  group: another.example.com
  names: {kind: Tenant, listKind: TenantList, plural: tenants, singular: tenant}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const OTHER_OBJECT: &str = "{apiVersion: another.example.com/v1, kind: Tenant, metadata: {name: acme}}";

/// A fenced block.
struct Block {
    language: &'static str,
    text: &'static str,
    /// Why it is skipped: `<!-- skipped: hours -->` on the line before the fence.
    skipped: Option<&'static str>,
}

fn blocks(document: &'static str) -> Vec<Block> {
    let (mut blocks, mut rest) = (Vec::new(), document);
    while let Some((before, fenced)) = rest.split_once("\n```") {
        let (language, body) = fenced.split_once('\n').expect("a fence is a line");
        let (text, after) = body.split_once("\n```").expect("a block ends");
        let marker = before.lines().next_back().unwrap_or_default();
        let skipped = marker.strip_prefix("<!-- skipped: ").and_then(|text| text.strip_suffix(" -->"));
        blocks.push(Block { language, text, skipped });
        rest = after;
    }
    blocks
}

/// The shell of a reader, with a home directory of its own.
struct Shell {
    home: tempfile::TempDir,
    path: OsString,
    kubeconfig: OsString,
}

impl Shell {
    fn new(cluster: &Cluster) -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = |program: &Path| program.parent().unwrap().to_owned();
        let own = [home.path().join(".local/bin"), folder(&binary::program()), folder(&program("kubectl"))];
        let inherited = std::env::var_os("PATH").unwrap();
        let path = own.into_iter().chain(std::env::split_paths(&inherited));
        let path = std::env::join_paths(path).unwrap();
        Self { home, path, kubeconfig: cluster.kubeconfig().into() }
    }

    /// Runs commands that have to succeed, and returns what they print.
    async fn paste(&self, commands: &str) -> String {
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", commands]).current_dir(self.home.path());
        bash.env("HOME", self.home.path()).env("PATH", &self.path).env("KUBECONFIG", &self.kubeconfig);
        bash.stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || bash.output()).await.unwrap().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{commands}\n{stdout}\n{stderr}");
        stdout.into_owned()
    }

    /// Applies manifests, from the file that the document calls them.
    async fn apply(&self, manifests: &str) {
        std::fs::write(self.home.path().join("tempmail.yaml"), manifests).unwrap();
        self.paste("kubectl apply -f tempmail.yaml").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_block_of_the_documentation_works_where_another_operator_has_tenants() {
    let mut installation = Installation::exclusive().await;
    installation.cluster.do_not_reuse();
    install_another_operator(&installation.cluster).await;
    let shell = Shell::new(&installation.cluster);
    let (mut pasted, mut skipped) = (0, 0);
    for block in blocks(DOCUMENT) {
        if let Some(reason) = block.skipped {
            assert!(REASONS.contains(&reason), "{reason}");
            skipped += 1;
            if block.text.contains("helm uninstall") {
                installation.app.stop_operator().await;
            }
            continue;
        }
        pasted += 1;
        match block.language {
            "yaml" => shell.apply(block.text).await,
            "sh" => paste(&installation, &shell, block.text).await,
            other => panic!("what to do with {other}: {}", block.text),
        }
    }
    assert_eq!(skipped, SKIPPED, "blocks are skipped");
    assert!(pasted > 15, "{pasted} blocks are pasted");
    let theirs = installation.cluster.kubectl(&["get", "tenants.another.example.com", "acme"]).await;
    theirs.expect("the other operator's object is there");
}

async fn install_another_operator(cluster: &Cluster) {
    cluster.apply(OTHER_KIND).await.unwrap();
    let definition = "crd/tenants.another.example.com";
    let established = ["wait", "--for=condition=Established", "--timeout=60s", definition];
    cluster.kubectl(&established).await.unwrap();
    cluster.apply(OTHER_OBJECT).await.unwrap();
}

/// Pastes commands, and does what the document asks its reader to do by hand before and after.
async fn paste(installation: &Installation<Cluster>, shell: &Shell, commands: &str) {
    let reads_mail = commands.contains(BASE_URL);
    if reads_mail {
        installation.app.deliver(ADDRESS, "Hello", "").await;
    }
    let base_url = format!("http://{}", installation.app.http());
    let printed = shell.paste(&commands.replace(BASE_URL, &base_url)).await;
    if reads_mail {
        assert!(printed.contains("\"Hello\""), "{printed}");
    }
    if commands.contains(".status.verification.records[*]") {
        let shown = installation.cluster.objects("team-a").get("customdomain/mail").await;
        let (token, mx_host) = verification_records(&shown);
        assert!(printed.contains(&token) && printed.contains(&mx_host), "{printed}");
        installation.dns.domain(DOMAIN, 1).await;
        installation.dns.set_verified(DOMAIN, &token, &mx_host).await;
    }
}
