//! The proxies of `docs/realtime.md`: each configuration as it stands there, in the program that it is for, before
//! `tempmail up`.

use std::net::SocketAddr;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::{self, Request};
use tempmail_tests::port::free_port;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, EventStream, send_mail, smtp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const DOCUMENT: &str = include_str!("../../docs/realtime.md");
/// The name of the examples.
const HOST: &str = "mail.example.com";
const ADDRESS: &str = "proxied@inbox.localhost";

/// The example in a language of the document.
fn example(language: &str) -> &'static str {
    let start = format!("```{language}\n");
    let (_, rest) =
        DOCUMENT.split_once(&start).unwrap_or_else(|| panic!("there is an example in {language}"));
    rest.split_once("```\n").expect("a block of code ends").0
}

/// `tempmail up`, which knows the name of the examples, and a proxy before it.
struct Proxied {
    address: SocketAddr,
    directory: TempDir,
    installation: UpInstallation,
    _up: Binary,
    _proxy: Option<Binary>,
}

impl Proxied {
    fn start() -> Self {
        let installation = UpInstallation::new();
        let up = installation.up(&[("TEMPMAIL_HTTP__HOSTS", HOST)]);
        let directory = tempfile::tempdir().unwrap();
        Self { address: free_port(), directory, installation, _up: up, _proxy: None }
    }

    /// Puts a program before it, with a configuration in which each of these texts is replaced by an address of the test.
    fn behind(
        mut self,
        program: &str,
        arguments: &[&str],
        text: &str,
        replaced: &[(&str, String); 2],
    ) -> Self {
        let text = replaced.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "the example has {from}");
            text.replace(from, to)
        });
        let file = self.directory.path().join("proxy.conf");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).arg(&file).current_dir(self.directory.path());
        self._proxy = Some(Binary::spawn(command));
        self
    }

    fn request(&self, method: Method, path: &str) -> Request {
        let url = format!("http://{}{path}", self.address);
        Request::new(http::client_without_pool(), method, &url).header("host", HOST)
    }

    fn live(&self, method: Method, path: &str) -> Request {
        self.request(method, path).live(self.installation.credentials()["live_token"].as_str().unwrap())
    }

    /// Waits until the proxy listens.
    async fn is_ready(&self) {
        eventually("the proxy passes requests on", || async {
            let answer = self.request(Method::GET, "/v1/config").try_send().await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    async fn deliver(&self, subject: &str) {
        let message = smtp::message("a@client.example", subject, "");
        let reply = send_mail(self.installation.smtp, "a@client.example", ADDRESS, &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }

    /// Waits until so many clients wait for mail.
    async fn waits_are(&self, count: usize) {
        let url = format!("http://{}/metrics", self.installation.admin);
        eventually("so many clients wait", || async {
            let metrics = http::client_without_pool().get(&url).send().await.ok()?.text().await.ok()?;
            metrics.lines().any(|line| line == format!("tempmail_subscribers {count}")).then_some(())
        })
        .await;
    }

    /// Asserts that everything works which a proxy may break.
    async fn assert_passes_everything_on(&self) {
        self.is_ready().await;
        let domains = format!("http://{}/api/domains", self.address);
        let foreign = Request::new(http::client_without_pool(), Method::GET, &domains);
        let foreign = foreign.header("host", "evil.example").send().await;
        assert!(foreign.status == 421 && foreign.text().contains("evil.example"), "{}", foreign.text());

        // A stream is not buffered.
        let mut stream =
            EventStream::open(self.live(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}"))).await;
        stream.block().await;
        self.deliver("streamed").await;
        let email: Value = serde_json::from_str(&stream.next().await.data).unwrap();
        assert_eq!(email["subject"], "streamed");
        drop(stream);
        self.waits_are(0).await;

        // A wait ends with its client.
        let wait = json!({"address": ADDRESS, "since": "0", "match": {"subject": "none"}, "timeout": 300});
        let waiting = tokio::spawn(self.live(Method::POST, "/v1/wait").json(&wait).send());
        self.waits_are(1).await;
        waiting.abort();
        self.waits_are(0).await;
        let once = json!({"address": ADDRESS, "match": {"subject": "streamed"}, "timeout": 0});
        self.live(Method::POST, "/v1/wait").json(&once).send().await.expect(200);

        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let tools = self.live(Method::POST, "/mcp").header("accept", "*/*").json(&call).send().await;
        assert_eq!(tools.status, 200, "{}", tools.text());

        let mut socket = RawConnection::connect(self.address, None).await.unwrap();
        let upgrade = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let upgrade = upgrade.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(socket.get("/api/ws", &upgrade).await.unwrap().status, 101);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_everything_on_as_the_document_configures_it() {
    let proxied = Proxied::start();
    let directory = proxied.directory.path().display().to_string();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
        .concat();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {directory}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{paths}{}\n}}\n",
        example("nginx")
    );
    let addresses = [
        ("listen 8000;", format!("listen {};", proxied.address)),
        ("127.0.0.1:8080", proxied.installation.http.to_string()),
    ];
    let proxied = proxied.behind("/usr/sbin/nginx", &["-e", "stderr", "-c"], &text, &addresses);
    proxied.assert_passes_everything_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_passes_everything_on_as_the_document_configures_it() {
    let proxied = Proxied::start();
    let socket = proxied.directory.path().join("haproxy.sock");
    let text = format!("global\n    stats socket {}\n\n{}", socket.display(), example("haproxy"));
    let addresses = [
        ("bind :8000", format!("bind {}", proxied.address)),
        ("127.0.0.1:8080", proxied.installation.http.to_string()),
    ];
    let proxied = proxied.behind("/usr/sbin/haproxy", &["-db", "-f"], &text, &addresses);
    proxied.is_ready().await;
    // Its health check names no host.
    let status = eventually("HAProxy has checked the server", || async {
        let mut stream = UnixStream::connect(&socket).await.ok()?;
        stream.write_all(b"show stat\n").await.ok()?;
        let mut statistics = String::new();
        stream.read_to_string(&mut statistics).await.ok()?;
        let server = statistics.lines().find(|line| line.starts_with("tempmail,api,"))?;
        server.contains(",L7").then(|| server.to_owned())
    })
    .await;
    assert!(status.contains(",L7OK,200,"), "{status}");
    proxied.assert_passes_everything_on().await;
}

/// Debian has no Envoy: without one the example is only read.
#[tokio::test(flavor = "multi_thread")]
async fn envoy_passes_everything_on_as_the_document_configures_it() {
    let text = example("yaml");
    let parsed: Value = serde_saphyr::from_str(text).expect("the example is YAML");
    assert_eq!(parsed["static_resources"]["clusters"][0]["name"], "tempmail");
    if Command::new("envoy").arg("--version").output().is_err() {
        return;
    }
    let proxied = Proxied::start();
    let port = |address: SocketAddr| format!("address: 127.0.0.1, port_value: {}", address.port());
    let addresses = [
        ("address: 0.0.0.0, port_value: 8000", port(proxied.address)),
        ("address: 127.0.0.1, port_value: 8080", port(proxied.installation.http)),
    ];
    let proxied = proxied.behind("envoy", &["--config-path"], text, &addresses);
    proxied.assert_passes_everything_on().await;
}
