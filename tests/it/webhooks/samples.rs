//! The samples of `docs/webhooks.md` are programs that take what is genuine and nothing else. Those
//! whose language is not on the machine are skipped, which standard error says.

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

use super::{webhook_to, with_receiver};

const DOCUMENT: &str = include_str!("../../../docs/webhooks.md");
const RUST_SAMPLE: &str = include_str!("samples/receiver.rs");
const OTHER_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What a receiver is sent.
struct Request {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Request {
    fn signed(secret: &str, timestamp: &str, body: &[u8]) -> Self {
        let signature = format!("sha256={}", signature(secret, timestamp, body));
        let fields = [("x-webhook-timestamp", timestamp), ("x-webhook-signature", &signature)];
        let headers = fields.map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("digits are ASCII"))
        });
        Self { headers: headers.into_iter().collect(), body: body.to_vec() }
    }

    /// One that came, without what belongs to its connection.
    fn of(received: &ReceivedRequest) -> Self {
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
    mac.finalize().into_bytes().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The one block of the document in a language that is more than a few lines.
fn sample(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let blocks = DOCUMENT.split(&begin).skip(1).map(|rest| rest.split_once("```").expect("it ends").0);
    let programs: Vec<&str> = blocks.filter(|block| block.lines().count() > 9).collect();
    let [program] = programs[..] else { panic!("{} samples in {language}", programs.len()) };
    program
}

/// Whether a program is on the machine; says so where it is not.
fn has(program: &str, version: &str) -> bool {
    let there = Command::new(program).arg(version).output().is_ok_and(|said| said.status.success());
    if !there {
        let _ = writeln!(std::io::stderr(), "SKIPPED: a sample of docs/webhooks.md, there is no {program}");
    }
    there
}

/// The sample, as a file of its own.
fn write(language: &str, name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join(name);
    std::fs::write(&file, sample(language)).expect("a file can be written");
    (directory, file)
}

/// Sends a receiver that `command` starts what tempmail sends, and what others might.
async fn judge(mut command: Command) {
    let (app, receiver) = with_receiver().await;
    let secret = webhook_to(&app, &receiver.url()).await.secret;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "A subject with \"id\":\"evt_0\" in it", "").await;
    let sent = receiver.wait_for_requests(1).await.remove(0);
    let id = sent.header("x-webhook-id").to_owned();

    let address = free_port();
    command.env("WEBHOOK_SECRET", &secret).env("PORT", address.port().to_string());
    let sample = Binary::spawn(command);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client can be made");
    let send = async |request: Request| {
        let request = http.post(format!("http://{address}/in")).headers(request.headers).body(request.body);
        request.send().await.ok().map(|answer| answer.status().as_u16())
    };
    let body = sent.body.to_vec();
    let genuine = || Request::of(&sent);
    let first = || async { send(genuine()).await };
    assert_eq!(eventually("the sample answers", first).await, 204, "{}", sample.output());

    let now = SystemClock::default().now().as_second();
    let at = |seconds: i64| (now + seconds).to_string();
    let changed = [&body[..], b" "].concat();
    let refused = [
        ("a changed body", genuine().with_body(changed)),
        ("another secret", Request::signed(OTHER_SECRET, &at(0), &body)),
        ("an old timestamp", Request::signed(&secret, &at(-400), &body)),
        ("a timestamp to come", Request::signed(&secret, &at(400), &body)),
        ("a timestamp that is none", Request::signed(&secret, "now", &body)),
        ("another timestamp", genuine().with("x-webhook-timestamp", "1")),
        ("no timestamp", genuine().without("x-webhook-timestamp")),
        ("no signature", genuine().without("x-webhook-signature")),
        ("an empty signature", genuine().with("x-webhook-signature", "")),
        ("a signature without octets", genuine().with("x-webhook-signature", "sha256=")),
        ("half a signature", genuine().with("x-webhook-signature", "sha256=abc")),
    ];
    for (what, request) in refused {
        assert_eq!(send(request).await, Some(401), "{what}: {}", sample.output());
    }
    assert_eq!(send(Request::signed(&secret, &at(-200), &body)).await, Some(204), "late, and a duplicate");
    let other = Request::signed(&secret, &at(0), &with_id(&body, &id, "evt_another"));
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

/// Judges a sample whose program takes it as text.
async fn judge_text(language: &str, file: &str, program: &str) {
    let (directory, file) = write(language, file);
    let mut command = program_in(directory.path(), program);
    command.arg(file);
    judge(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_python_takes_what_is_genuine_and_nothing_else() {
    if has("python3", "--version") {
        judge_text("python", "receiver.py", "python3").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_javascript_takes_what_is_genuine_and_nothing_else() {
    if has("node", "--version") {
        judge_text("js", "receiver.mjs", "node").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_go_takes_what_is_genuine_and_nothing_else() {
    if has("go", "version") {
        let (directory, file) = write("go", "receiver.go");
        let program = directory.path().join("receiver");
        let built =
            program_in(directory.path(), "go").arg("build").arg("-o").arg(&program).arg(file).output();
        let built = built.expect("go is there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        judge(Command::new(program)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_java_takes_what_is_genuine_and_nothing_else() {
    // It is compiled when it starts.
    if has("javac", "--version") && has("java", "--version") {
        judge_text("java", "Receiver.java", "java").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_rust_takes_what_is_genuine_and_nothing_else() {
    assert!(RUST_SAMPLE.ends_with(sample("rust")), "docs/webhooks.md and samples/receiver.rs differ");
    judge(Command::new(env!("CARGO_BIN_EXE_webhook-receiver"))).await;
}

#[test]
fn the_example_of_a_request_is_signed_with_the_secret_beside_it() {
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
