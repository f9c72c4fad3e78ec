//! Schemathesis against the real binary: it generates requests from the document, valid and invalid ones, and checks every
//! response against it.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::postgres::Database;
use tempmail_tests::{Binary, rows, send_mail};

use super::FULL;

/// A mail with an attachment.
const MAIL: &[u8] = b"From: Ada <ada@client.example>\r\nTo: you\r\nSubject: hello\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n\
    --b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nattached\r\n--b--\r\n";

/// The mailbox whose JWT the run has.
const OWNED: &str = "owned@inbox.localhost";

/// Keeps the credentials of the run from being deleted by it.
const PREPARE: [&str; 2] =
    ["UPDATE api_token SET managed_by = 'kubernetes'", "UPDATE mailbox SET managed_by = 'kubernetes'"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Schemathesis and takes long: `tests/run schemathesis` installs and starts it"]
async fn nothing_is_found() {
    let database = Database::create().await;
    let installation = UpInstallation::new();
    let server = up(&installation, &database);
    let api = SchemathesisServer::new(&installation.credentials());
    let mailbox = api.post("/api/accounts", &account(OWNED)).await;
    for statement in PREPARE {
        sqlx::query(statement).execute(&database.pool()).await.unwrap();
    }
    rows::lift_limits(&database.pool()).await;
    let smtp = installation.smtp;
    let receive = async |address: &str| {
        let reply = send_mail(smtp, "ada@client.example", address, MAIL).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    };
    // More than a long-poll can wait for, and further mail all the time, since the run deletes some.
    for _ in 0..60 {
        receive(FULL).await;
        receive(OWNED).await;
    }
    let more = tokio::spawn(async move {
        loop {
            for address in [FULL, OWNED] {
                send_mail(smtp, "ada@client.example", address, MAIL).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });

    let settings = settings(&api, mailbox["token"].as_str().unwrap()).await;
    let mut run = Command::new(setting("SCHEMATHESIS").expect("SCHEMATHESIS names the program"));
    run.arg("--config-file").arg(settings.path().join("schemathesis.toml"));
    run.args(["run", &format!("{}/openapi.json", api.base)]);
    run.args(["--max-examples", &setting("SCHEMATHESIS_EXAMPLES").unwrap_or_else(|| "1000".into())]);
    run.args(setting("SCHEMATHESIS_ARGUMENTS").unwrap_or_default().split_whitespace());
    run.env("TEMPMAIL_PRO", &api.pro).env("TEMPMAIL_LIVE", &api.live);
    run.env("TEMPMAIL_MAILBOX", mailbox["token"].as_str().unwrap());
    run.current_dir(root());
    let finished = tokio::task::spawn_blocking(move || run.status().expect("Schemathesis starts"));
    let status: ExitStatus = finished.await.unwrap();
    more.abort();
    let log = server.stderr();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
    assert!(status.success(), "{log}");
}

/// The binary over the database of the test, without the limits that a run would reach, and with an unreachable name
/// server.
fn up(installation: &UpInstallation, database: &Database) -> Binary {
    let mut command = installation.command();
    command.arg("--postgres-url").arg(database.url());
    for limit in ["V1_PER_SECOND", "PRO_PER_SECOND"] {
        command.env(format!("TEMPMAIL_LIMITS__{limit}"), "1000000");
    }
    command.env("TEMPMAIL_DNS__SERVERS", "[\"127.0.0.1:1\"]");
    let mut server = Binary::spawn(command);
    server.wait_for_line("ready");
    server
}

/// The server and its credentials.
struct SchemathesisServer {
    client: reqwest::Client,
    base: String,
    pro: String,
    live: String,
}

impl SchemathesisServer {
    fn new(credentials: &Value) -> Self {
        let text = |key: &str| credentials[key].as_str().unwrap().to_owned();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { client, base: text("base_url"), pro: text("pro_token"), live: text("live_token") }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        Request::new(&self.client, method, &format!("{}{path}", self.base))
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.request(Method::POST, path).bearer(&self.pro).json(body).send().await.expect(201)
    }
}

fn account(address: &str) -> Value {
    json!({"address": address, "password": "correct horse"})
}

/// The configuration, and the dictionaries that it names.
async fn settings(api: &SchemathesisServer, mailbox: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let settings = directory.path().join("schemathesis.toml");
    fs::copy(root().join("tests/schemathesis.toml"), settings).unwrap();
    let emails = api.request(Method::GET, &format!("/v1/inbox/{FULL}?limit=50")).live(&api.live).send().await;
    let messages = api.request(Method::GET, "/api/messages").bearer(mailbox).send().await;
    let [mut accounts, mut webhooks, mut tokens, mut domain_ids] = [const { Vec::new() }; 4];
    let credentials = vec![json!({ "token": &api.pro })];
    let names: Vec<Value> =
        (0..500).map(|number| account(&format!("account{number}@inbox.localhost"))).collect();
    let domains: Vec<Value> =
        (0..500).map(|number| json!({"domain": format!("d{number}.example.com")})).collect();
    for number in 0..10 {
        let address = format!("account{number}@inbox.localhost");
        accounts.push(api.post("/api/accounts", &account(&address)).await);
        let domain = json!({"domain": format!("there{number}.example.com")});
        domain_ids.push(api.post("/pro/api/domains", &domain).await);
        let webhook = json!({"url": "https://hooks.example/", "events": ["email.received"]});
        webhooks.push(api.post("/pro/api/webhooks", &webhook).await);
        tokens.push(api.post("/pro/api/tokens", &json!({"name": address, "kind": "live"})).await);
    }
    for (name, things, field) in [
        ("accounts", &accounts, "id"),
        ("addresses", &vec![json!({ "address": FULL })], "address"),
        ("domain_ids", &domain_ids, "id"),
        ("domains", &domains, "domain"),
        ("credentials", &credentials, "token"),
        ("names", &names, "address"),
        ("emails", emails.expect(200)["emails"].as_array().unwrap(), "id"),
        ("messages", messages.expect(200)["messages"].as_array().unwrap(), "id"),
        ("tokens", &tokens, "id"),
        ("webhooks", &webhooks, "id"),
    ] {
        let lines: Vec<String> = things.iter().map(|thing| thing[field].to_string()).collect();
        fs::write(directory.path().join(format!("{name}.dict")), lines.join("\n")).unwrap();
    }
    directory
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// What `tests/run` or its caller sets.
#[expect(clippy::disallowed_methods, reason = "settings of this run, not of the product")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
