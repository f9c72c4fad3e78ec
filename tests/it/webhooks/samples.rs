//! The samples of `docs/webhooks.md` accept genuine requests and no others. Those whose language is not
//! installed are skipped, and standard error says so.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;
use tempfile::TempDir;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::Binary;
use tempmail_tests::port::free_port;
use tempmail_tests::receiver::ReceivedRequest;
use tempmail_tests::wait::eventually;

use super::{app_and_receiver, create_webhook};

const DOCUMENT: &str = include_str!("../../../docs/webhooks.md");
const RUST_SAMPLE: &str = include_str!("samples/receiver.rs");
const OTHER_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A request to a sample.
struct SampleRequest {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl SampleRequest {
    fn signed(secret: &str, timestamp: &str, body: &[u8]) -> Self {
        let signature = format!("sha256={}", signature(secret, timestamp, body));
        let fields = [("x-webhook-timestamp", timestamp), ("x-webhook-signature", &signature)];
        let headers = fields.map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("digits are ASCII"))
        });
        Self { headers: headers.into_iter().collect(), body: body.to_vec() }
    }

    /// A copy of a request, without the fields that belong to its connection.
    fn copy_of(received: &ReceivedRequest) -> Self {
        let mut headers = received.headers.clone();
        for name in [HOST, CONTENT_LENGTH] {
            headers.remove(name);
        }
        Self { headers, body: received.body.to_vec() }
    }

    fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.remove(name).expect("the field is there");
        self
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes every key");
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The only block of the document in this language that is longer than a few lines.
fn sample(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let blocks = DOCUMENT.split(&begin).skip(1).map(|rest| rest.split_once("```").expect("it ends").0);
    let programs: Vec<&str> = blocks.filter(|block| block.lines().count() > 9).collect();
    let [program] = programs[..] else { panic!("{} samples in {language}", programs.len()) };
    program
}

/// Whether a program is installed; prints a line if not.
fn is_installed(program: &str, version: &str) -> bool {
    let installed = Command::new(program).arg(version).output().is_ok_and(|output| output.status.success());
    if !installed {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: a sample of docs/webhooks.md: {program} is not installed");
    }
    installed
}

/// The sample, as a file of its own.
fn write(language: &str, name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory can be created");
    let file = directory.path().join(name);
    std::fs::write(&file, sample(language)).expect("a file can be written");
    (directory, file)
}

/// Sends the sample that `command` starts a genuine request, and forged ones.
async fn check_sample(mut command: Command) {
    let (app, receiver) = app_and_receiver().await;
    let secret = create_webhook(&app, &receiver.url()).await.secret;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "A subject with \"id\":\"evt_0\" in it", "").await;
    let sent = receiver.wait_for_requests(1).await.remove(0);
    let id = sent.header("x-webhook-id").to_owned();

    let address = free_port();
    command.env("WEBHOOK_SECRET", &secret).env("PORT", address.port().to_string());
    let sample = Binary::spawn(command);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client can be created");
    let send = async |request: SampleRequest| {
        let request = http.post(format!("http://{address}/in")).headers(request.headers).body(request.body);
        request.send().await.ok().map(|answer| answer.status().as_u16())
    };
    let body = sent.body.to_vec();
    let genuine = || SampleRequest::copy_of(&sent);
    let first = || async { send(genuine()).await };
    assert_eq!(eventually("the sample answers", first).await, 204, "{}", sample.output());

    let now = SystemClock::default().now().as_second();
    let at = |seconds: i64| (now + seconds).to_string();
    let changed = [&body[..], b" "].concat();
    let refused = [
        ("a changed body", genuine().with_body(changed)),
        ("another secret", SampleRequest::signed(OTHER_SECRET, &at(0), &body)),
        ("an old timestamp", SampleRequest::signed(&secret, &at(-400), &body)),
        ("a future timestamp", SampleRequest::signed(&secret, &at(400), &body)),
        ("an invalid timestamp", SampleRequest::signed(&secret, "now", &body)),
        ("another timestamp", genuine().with("x-webhook-timestamp", "1")),
        ("no timestamp", genuine().without("x-webhook-timestamp")),
        ("no signature", genuine().without("x-webhook-signature")),
        ("an empty signature", genuine().with("x-webhook-signature", "")),
        ("a signature without digits", genuine().with("x-webhook-signature", "sha256=")),
        ("half a signature", genuine().with("x-webhook-signature", "sha256=abc")),
    ];
    for (what, request) in refused {
        assert_eq!(send(request).await, Some(401), "{what}: {}", sample.output());
    }
    assert_eq!(
        send(SampleRequest::signed(&secret, &at(-200), &body)).await,
        Some(204),
        "late, and a duplicate"
    );
    let other = SampleRequest::signed(&secret, &at(0), &with_id(&body, &id, "evt_another"));
    assert_eq!(send(other).await, Some(204), "another event");
    eventually("the other event is handled", || async {
        sample.output().contains("evt_another").then_some(())
    })
    .await;
    assert_eq!(sample.output().matches(&id).count(), 1, "{}", sample.output());
}

fn with_id(body: &[u8], id: &str, other: &str) -> Vec<u8> {
    std::str::from_utf8(body).expect("JSON is UTF-8").replace(id, other).into_bytes()
}

fn program_in(directory: &Path, name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(directory);
    command
}

/// Checks a sample that an interpreter runs.
async fn check_script(language: &str, file: &str, program: &str) {
    let (directory, file) = write(language, file);
    let mut command = program_in(directory.path(), program);
    command.arg(file);
    check_sample(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_genuine_requests_in_python() {
    if is_installed("python3", "--version") {
        check_script("python", "receiver.py", "python3").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_genuine_requests_in_javascript() {
    if is_installed("node", "--version") {
        check_script("js", "receiver.mjs", "node").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_genuine_requests_in_go() {
    if is_installed("go", "version") {
        let (directory, file) = write("go", "receiver.go");
        let program = directory.path().join("receiver");
        let built =
            program_in(directory.path(), "go").arg("build").arg("-o").arg(&program).arg(file).output();
        let built = built.expect("go is there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        check_sample(Command::new(program)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_genuine_requests_in_java() {
    // Java compiles it when it starts.
    if is_installed("javac", "--version") && is_installed("java", "--version") {
        check_script("java", "Receiver.java", "java").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_genuine_requests_in_rust() {
    assert!(RUST_SAMPLE.ends_with(sample("rust")), "docs/webhooks.md and samples/receiver.rs differ");
    check_sample(Command::new(env!("CARGO_BIN_EXE_webhook-receiver"))).await;
}

#[test]
fn shows_a_request_with_a_valid_signature() {
    let example = DOCUMENT.split_once("## The request").expect("the section is there").1;
    let secret = example.split('`').find(|code| code.starts_with("whsec_")).expect("a secret");
    let request = example.split("```text\n").nth(1).expect("a request");
    let (head, rest) = request.split_once("\n\n").expect("a head");
    let body = rest.lines().next().expect("a body");
    let field = |name: &str| {
        let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    let expected = signature(secret, field("x-webhook-timestamp"), body.as_bytes());
    assert_eq!(field("x-webhook-signature"), format!("sha256={expected}"));
}
