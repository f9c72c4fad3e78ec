//! `up --sink`: all mail is caught, and belongs to the tenant of `up`.

use std::net::Ipv4Addr;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::{self, Request};
use tempmail_tests::{Binary, CommandOutput, EventStream, Response, SmtpClient, send_mail, smtp};

const SENDER: &str = "app@client.example";
/// On a domain that nobody serves.
const FOREIGN: &str = "Ada@customer.example.org";

struct Sink {
    installation: UpInstallation,
    server: Binary,
}

impl Sink {
    fn start() -> Self {
        Self::start_with(&["--sink"])
    }

    fn start_with(flags: &[&str]) -> Self {
        let installation = UpInstallation::new();
        let server = installation.up_with(flags, &[("TEMPMAIL_LIMITS__V1_PER_SECOND", "1000")]);
        Self { installation, server }
    }

    fn token(&self, name: &str) -> String {
        self.installation.credentials()[name].as_str().unwrap().to_owned()
    }

    fn request(&self, method: Method, path: &str) -> Request {
        let url = format!("http://{}{path}", self.installation.http);
        Request::new(http::client_without_pool(), method, &url)
    }

    async fn live(&self, method: Method, path: &str) -> Response {
        self.request(method, path).live(&self.token("live_token")).send().await
    }

    async fn subjects(&self, path: &str) -> Vec<String> {
        subjects(&self.live(Method::GET, path).await.expect(200))
    }

    /// The live token of a tenant that the test creates.
    async fn other_tenant(&self) -> String {
        let directory = self.installation.data_dir();
        let mut printed = String::new();
        for arguments in ["tenant create acme", "token create acme --kind live"] {
            let mut words: Vec<&str> = arguments.split(' ').collect();
            words.extend(["--data-dir", directory.to_str().unwrap()]);
            printed = CommandOutput::run(&words, &[]).await.success().to_owned();
        }
        printed
    }

    async fn send(&self, recipient: &str, subject: &str) {
        let message = smtp::message(SENDER, subject, "");
        let reply = send_mail(self.installation.smtp, SENDER, recipient, &message).await;
        assert_eq!(reply.code, 250, "{recipient}: {reply:?}");
    }
}

fn subjects(body: &Value) -> Vec<String> {
    let emails = body["emails"].as_array().expect("a list of emails").iter();
    emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn catches_mail_for_every_domain_and_every_name() {
    let sink = Sink::start();
    for (recipient, subject) in [
        (FOREIGN, "foreign"),
        ("postmaster@sink.example.com", "reserved"),
        ("admin@inbox.example.net", "reserved elsewhere"),
        ("user+tag@sink.example.com", "tagged"),
    ] {
        sink.send(recipient, subject).await;
    }
    let inbox = sink.subjects(&format!("/v1/inbox/{FOREIGN}")).await;
    assert_eq!(inbox, ["foreign"]);
    assert_eq!(sink.subjects("/v1/inbox/postmaster@sink.example.com").await, ["reserved"]);
    assert_eq!(
        sink.subjects("/v1/me?count=4").await,
        ["tagged", "reserved elsewhere", "reserved", "foreign"],
        "all of it without an address"
    );

    let found = sink.live(Method::GET, &format!("/v1/inbox/{FOREIGN}")).await.expect(200);
    let id = found["emails"][0]["id"].as_str().unwrap().to_owned();
    let email = sink.live(Method::GET, &format!("/v1/email/{id}")).await.expect(200);
    assert_eq!(email["address"], "ada@customer.example.org");
    let pro = sink.request(Method::GET, &format!("/pro/api/messages/{id}")).bearer(&sink.token("pro_token"));
    assert_eq!(pro.send().await.expect(200)["subject"], "foreign", "the page shows it");
    assert_eq!(sink.live(Method::DELETE, &format!("/v1/inbox/{FOREIGN}")).await.status, 204);
    sink.live(Method::GET, &format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_mailboxes_their_owners_and_lets_reserved_names_be_created() {
    let sink = Sink::start();
    let created = sink
        .request(Method::POST, "/api/accounts")
        .json(&json!({"address": "admin@sink.example.com", "password": "pass123"}))
        .send()
        .await
        .expect(201);
    sink.send("admin@sink.example.com", "for the mailbox").await;
    let read = sink.request(Method::GET, "/api/messages").bearer(created["token"].as_str().unwrap());
    assert_eq!(read.send().await.expect(200)["messages"][0]["subject"], "for the mailbox");
    sink.live(Method::GET, "/v1/inbox/admin@sink.example.com").await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_what_it_caught_from_other_tenants() {
    let sink = Sink::start();
    sink.send(FOREIGN, "private").await;
    let found = sink.live(Method::GET, &format!("/v1/inbox/{FOREIGN}")).await.expect(200);
    let id = found["emails"][0]["id"].as_str().unwrap();
    let other = sink.other_tenant().await;
    for path in [format!("/v1/inbox/{FOREIGN}"), format!("/v1/email/{id}"), format!("/v1/email/{id}/raw")] {
        sink.request(Method::GET, &path).live(&other).send().await.assert_v1_error(404, "not_found");
    }
    let deletion = sink.request(Method::DELETE, &format!("/v1/email/{id}")).live(&other);
    deletion.send().await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_any_password_and_normalises_line_ends() {
    let sink = Sink::start();
    let mut client = SmtpClient::connect(sink.installation.smtp).await;
    let hello = client.command("EHLO client.example").await;
    assert!(hello.lines.iter().any(|line| line.contains("AUTH PLAIN LOGIN")), "{hello:?}");
    let upgraded = hello.lines.iter().any(|line| line.contains("STARTTLS"));
    assert!(!upgraded, "a client would upgrade, and verify a certificate that nobody vouches for: {hello:?}");
    assert_eq!(client.command("AUTH PLAIN AHRlc3RlcgBjYW5hcnktcGFzc3dvcmQ=").await.code, 235);
    client.expect_positive(&format!("MAIL FROM:<{SENDER}>")).await;
    client.expect_positive(&format!("RCPT TO:<{FOREIGN}>")).await;
    assert_eq!(client.command("DATA").await.code, 354);
    client.send("Subject: bare\n\nline\n.\n").await;
    assert_eq!(client.reply().await.code, 250);
    let found = sink.live(Method::GET, &format!("/v1/inbox/{FOREIGN}")).await.expect(200);
    let raw = format!("/v1/email/{}/raw", found["emails"][0]["id"].as_str().unwrap());
    assert!(sink.live(Method::GET, &raw).await.body.ends_with(b"Subject: bare\r\n\r\nline\r\n"));
    assert!(!sink.server.output().contains("canary-password"), "{}", sink.server.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_mail_by_the_path_that_rcpt_took() {
    let sink = Sink::start();
    let long = format!("reply+{}@replies.example", "a1b2c3d4".repeat(16));
    for path in [
        "taro..yamada@carrier.example",
        "hanako.@carrier.example",
        "dev@my_app.local",
        "\"Ada L.\"@customer.example",
        "\"a@b\"@customer.example",
        "root@[127.0.0.1]",
        "gr\u{fc}\u{df}e@b\u{fc}cher_1.example",
        &long,
    ] {
        sink.send(path, path).await;
        let encoded = http::percent(path);
        assert_eq!(sink.subjects(&format!("/v1/inbox/{encoded}")).await, [path]);
        assert_eq!(sink.live(Method::DELETE, &format!("/v1/inbox/{encoded}")).await.status, 204, "{path}");
    }
    let mut client = SmtpClient::connect_with_ehlo(sink.installation.smtp).await;
    client.expect_positive(&format!("MAIL FROM:<{SENDER}>")).await;
    for path in ["", "nobody", "a b@c.example"] {
        assert_eq!(client.command(&format!("RCPT TO:<{path}>")).await.status(), "553 5.1.3", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_streams_and_mints_tokens_for_the_path_that_rcpt_took() {
    let sink = Sink::start();
    for path in ["\"a@b c\"@customer.example", "hanako.@my_app.local"] {
        sink.send(path, path).await;
        let encoded = http::percent(path);
        let wait = sink.request(Method::POST, "/v1/wait").live(&sink.token("live_token"));
        let found = wait.json(&json!({"address": path, "since": "0", "timeout": 0})).send().await.expect(200);
        assert_eq!(found["email"]["subject"], path);

        let id = found["email"]["id"].as_str().unwrap();
        assert_eq!(sink.live(Method::GET, &format!("/v1/email/{id}")).await.expect(200)["subject"], path);
        let stream = sink.request(Method::GET, &format!("/v1/sse/addr?address={encoded}&since=0"));
        let mut stream = EventStream::open(stream.live(&sink.token("live_token"))).await;
        let event: Value = serde_json::from_str(&stream.next().await.data).expect("an event is JSON");
        assert_eq!(event["subject"], path);

        let minted = sink.request(Method::POST, "/v1/tokens").live(&sink.token("live_token"));
        let minted = minted.json(&json!({"address": path})).send().await.expect(201);
        let minted = minted["token"].as_str().unwrap();
        let read = sink.request(Method::GET, &format!("/v1/inbox/{encoded}")).live(minted).send().await;
        assert_eq!(subjects(&read.expect(200)), [path], "with a minted token");
        let read = sink.request(Method::GET, &format!("/v1/email/{id}")).live(minted).send().await;
        assert_eq!(read.status, 200, "{path}: {}", read.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_what_an_application_writes_as_it_is() {
    let sink = Sink::start();
    let long = "x".repeat(100_000);
    let fields: String = (0..5_000).map(|n| format!("X-Field-{n}: {n}\r\n")).collect();
    let recipients: Vec<String> = (0..1_000).map(|n| format!("user{n}@customer.example")).collect();
    let mut client = SmtpClient::connect_with_ehlo(sink.installation.smtp).await;
    client.expect_positive(&format!("MAIL FROM:<{}@client.example> RET=HDRS ENVID=1", "v".repeat(400))).await;
    for recipient in &recipients {
        client.expect_positive(&format!("RCPT TO:<{recipient}> NOTIFY=SUCCESS,FAILURE")).await;
    }
    let refused = client.command(&format!("RCPT TO:<{FOREIGN}>")).await;
    assert_eq!(refused.code, 452, "the thousand-and-first: {refused:?}");
    let message = format!("Subject: all\r\n{fields}\r\n{long}\r\na\rb\r\n");
    assert_eq!(client.command("DATA").await.code, 354);
    client.send(format!("{message}.\r\n")).await;
    assert_eq!(client.reply().await.code, 250);
    let found = sink.live(Method::GET, &format!("/v1/inbox/{}", recipients[999])).await.expect(200);
    let raw = format!("/v1/email/{}/raw", found["emails"][0]["id"].as_str().unwrap());
    assert!(sink.live(Method::GET, &raw).await.body.ends_with(message.as_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_certificate_of_starttls() {
    let mut sink = Sink::start_with(&["--sink", "--starttls"]);
    let hello = SmtpClient::connect(sink.installation.smtp).await.command("EHLO client.example").await;
    assert!(hello.lines.iter().any(|line| line.contains("STARTTLS")), "{hello:?}");
    let file = sink.installation.data_dir().join("smtp-cert.pem");
    let made = std::fs::read(&file).expect("the data directory has the certificate");
    sink.server.signal(Signal::SIGTERM);
    assert!(sink.server.wait().success(), "{}", sink.server.output());
    sink.server = sink.installation.up_with(&["--sink", "--starttls"], &[]);
    assert_eq!(std::fs::read(&file).unwrap(), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_all_that_without_the_flag_and_keeps_what_was_caught_until_it_expires() {
    let mut sink = Sink::start();
    sink.send(FOREIGN, "caught").await;
    sink.server.signal(Signal::SIGTERM);
    assert!(sink.server.wait().success(), "{}", sink.server.output());
    sink.server = sink.installation.up(&[]);
    let mut client = SmtpClient::connect(sink.installation.smtp).await;
    let hello = client.command("EHLO client.example").await;
    assert!(!hello.lines.iter().any(|line| line.contains("AUTH")), "{hello:?}");
    assert_eq!(client.command("AUTH PLAIN AGEAYg==").await.code, 502);
    client.expect_positive(&format!("MAIL FROM:<{SENDER}>")).await;
    assert_eq!(client.command(&format!("RCPT TO:<{FOREIGN}>")).await.status(), "550 5.7.1");
    assert_eq!(client.command("RCPT TO:<admin@sink.example.com>").await.status(), "550 5.1.1");
    assert_eq!(sink.subjects("/v1/me").await, ["caught"]);
    sink.live(Method::GET, &format!("/v1/inbox/{FOREIGN}")).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_pages_of_this_machine_read_answers() {
    let sink = Sink::start();
    let allowed = async |path: &str, origin: &str| {
        let answer = sink.request(Method::GET, path).header("origin", origin).send().await;
        answer.headers.get("access-control-allow-origin").is_some_and(|value| value == origin)
    };
    assert!(allowed("/v1/config", "http://localhost:5173").await);
    assert!(!allowed("/v1/config", "http://evil.example").await);
    assert!(!allowed("/v1/config", "null").await);
    assert!(!allowed("/pro/api/accounts", "http://localhost:5173").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn has_a_server_of_mailosaur_for_every_domain() {
    let installation = UpInstallation::new();
    let server = installation.up_with(&["--sink"], &[("TEMPMAIL_COMPAT__MAILOSAUR__LISTEN", "127.0.0.1:0")]);
    let output = server.output();
    let url = output.split("mailosaur    ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let url = url.to_owned();
    let sink = Sink { installation, server };
    let body = json!({"name": "ci", "surfaces": ["mailosaur"]});
    let created = sink.request(Method::POST, "/v1/tokens").live(&sink.token("live_token")).json(&body);
    let created = created.send().await.expect(201);
    let token = created["token"].as_str().unwrap();
    let get = async |path: &str| {
        let request = Request::new(http::client_without_pool(), Method::GET, &format!("{url}{path}"));
        request.bearer(token).send().await
    };
    for (recipient, server) in [
        ("any@abcd1234.mailosaur.net", "abcd1234"),
        (FOREIGN, "customer.example.org"),
        ("any@sink.example.com", "sink.example.com"),
    ] {
        sink.send(recipient, server).await;
        let list = get(&format!("/api/messages?server={server}")).await.expect(200);
        let [summary] = list["items"].as_array().unwrap().as_slice() else { panic!("{server}: {list}") };
        assert_eq!(summary["subject"], server);
        let whole = get(&format!("/api/messages/{}", summary["id"].as_str().unwrap())).await.expect(200);
        assert_eq!(whole["server"], summary["server"], "{server}");
        let one = get(&format!("/api/servers/{}", whole["server"].as_str().unwrap())).await.expect(200);
        assert_eq!((&one["id"], &one["messages"]), (&whole["server"], &json!(1)), "{server}");
    }
    assert_eq!(get("/api/servers/%3F").await.status, 404);
}

#[test]
fn listens_on_other_addresses_only_if_forced() {
    let mut installation = UpInstallation::new();
    installation.smtp.set_ip(Ipv4Addr::UNSPECIFIED.into());
    let mut command = installation.command();
    command.arg("--sink");
    let mut refused = Binary::spawn(command);
    assert!(!refused.wait().success());
    assert!(refused.output().contains("add --force to open it"), "{}", refused.output());
    let forced = installation.up_with(&["--sink", "--force"], &[]);
    assert!(forced.output().contains("this is a sink"), "it is loud in the log: {}", forced.output());
}
