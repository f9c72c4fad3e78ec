//! Start, stop and restart.

use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::postgres::{Database, PostgresProxy};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, Response, SmtpClient, send_mail, smtp};

async fn get(url: String, token: &str) -> Response {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Request::new(&client, reqwest::Method::GET, &url).live(token).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_and_serves_mail_and_keeps_it_over_a_restart() {
    let installation = UpInstallation::new();
    let mut server = installation.up(&[]);
    let credentials = installation.credentials();
    assert_eq!(credentials["base_url"], format!("http://{}", installation.http));
    assert_eq!(credentials["smtp"], installation.smtp.to_string());
    assert!(credentials["pro_token"].as_str().unwrap().starts_with("tm_pro_"));
    let keys = std::fs::read(installation.data_dir().join("keys.json")).unwrap();
    let message = smtp::message("a@client.example", "hello", "");
    let reply = send_mail(installation.smtp, "a@client.example", "new@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let url = format!("http://{}/v1/inbox/new@inbox.localhost", installation.http);
    let live = credentials["live_token"].as_str().unwrap();
    assert_eq!(get(url.clone(), live).await.expect(200)["emails"][0]["subject"], "hello");
    for (path, body) in [("/livez", "ok"), ("/readyz", "ok")] {
        let answer = get(format!("http://{}{path}", installation.admin), "").await;
        assert_eq!((answer.status, answer.text().trim()), (200, body), "{path}");
    }
    assert_eq!(get(format!("http://{}/metrics", installation.admin), "").await.status, 200);
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());
    assert!(server.descendants().is_empty());

    let _server = installation.up(&[]);
    assert_eq!(installation.credentials(), credentials);
    assert_eq!(std::fs::read(installation.data_dir().join("keys.json")).unwrap(), keys);
    assert_eq!(get(url, live).await.expect(200)["emails"][0]["subject"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_a_postgres_that_takes_connections_late_and_says_so() {
    let (proxy, database) = (PostgresProxy::start().await, Database::empty().await);
    proxy.cut();
    let installation = UpInstallation::new();
    let mut command = installation.command();
    command.arg("--postgres-url").arg(database.url_through(proxy.port()));
    let mut server = Binary::spawn(command);
    eventually("it says what it waits for", || async {
        server.stderr().contains("tempmail: waiting for Postgres (").then_some(())
    })
    .await;
    assert!(server.exit_status().is_none(), "{}", server.output());
    proxy.restore();
    tokio::task::block_in_place(|| server.wait_for_line("ready"));
}

#[test]
fn shows_its_secrets_to_nobody_but_its_owner() {
    let installation = UpInstallation::new();
    // Its output is no terminal.
    let server = installation.up(&[]);
    let (credentials, output) = (installation.credentials(), server.output());
    let link = std::fs::read_to_string(installation.data_dir().join("sign-in-link")).unwrap();
    let (_, code) = link.trim().split_once("/dashboard#/sign-in/").expect("a link to the dashboard");
    assert!(code.len() == 64 && !output.contains(code), "the code is in\n{output}");
    assert!(output.contains("sign-in-link"), "the output names the file:\n{output}");
    for name in ["live_token", "pro_token"] {
        assert!(!output.contains(credentials[name].as_str().unwrap()), "{name} is in\n{output}");
    }
    for file in ["credentials.json", "keys.json", "sign-in-link"] {
        let mode = std::fs::metadata(installation.data_dir().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // The command that it prints instead of the token reads it from the file.
    let line = output.lines().find(|line| line.contains("x-api-token")).expect("a command that reads mail");
    let (_, substitution) = line.split_once("x-api-token: $(").expect("a command substitution");
    let (command, _) = substitution.split_once(')').expect("it ends");
    let found = std::process::Command::new("sh").arg("-c").arg(command).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.trim(), credentials["live_token"].as_str().unwrap());
}

/// Signs in by the link of an `up`.
async fn sign_in_by_link(installation: &UpInstallation) -> Response {
    let link = std::fs::read_to_string(installation.data_dir().join("sign-in-link")).unwrap();
    let origin = format!("http://{}", installation.http);
    let code = link.trim().strip_prefix(&format!("{origin}/dashboard#/sign-in/")).expect("a link").to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = Request::new(&client, reqwest::Method::POST, &format!("{origin}/pro/api/session/link"));
    request.header("origin", &origin).json(&serde_json::json!({ "code": code })).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_in_by_a_link_once_and_by_another_one_after_a_restart() {
    let installation = UpInstallation::new();
    let mut server = installation.up(&[]);
    let page = get(format!("http://{}/", installation.http), "").await;
    assert_eq!((page.status, page.media_type()), (200, "text/html"));
    let first = std::fs::read_to_string(installation.data_dir().join("sign-in-link")).unwrap();
    let signed_in = sign_in_by_link(&installation).await;
    assert_eq!(signed_in.status, 204);
    // Browsers keep no Secure cookie of plain http.
    assert!(signed_in.header("set-cookie").starts_with("tempmail="));
    sign_in_by_link(&installation).await.assert_api_error(401, "invalid_token");
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());

    let _server = installation.up(&[]);
    let second = std::fs::read_to_string(installation.data_dir().join("sign-in-link")).unwrap();
    assert_ne!(first, second);
    assert_eq!(sign_in_by_link(&installation).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_host_that_is_not_its_own() {
    let installation = UpInstallation::new();
    let _server = installation.up(&[]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (host, status) in [("rebound.evil.example", 421), ("localhost:8080", 200)] {
        for (server, path) in
            [(installation.http, "/v1/config"), (installation.http, "/"), (installation.admin, "/livez")]
        {
            let url = format!("http://{server}{path}");
            let request = Request::new(&client, reqwest::Method::GET, &url).header("host", host);
            assert_eq!(request.send().await.status, status, "{host} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_data_directory_that_is_in_use() {
    let installation = UpInstallation::new();
    let _first = installation.up(&[]);
    let other_ports = UpInstallation::new();
    let mut command = std::process::Command::new(tempmail_tests::binary::program());
    command.arg("up").arg("--data-dir").arg(installation.data_dir());
    command.arg("--smtp").arg(other_ports.smtp.to_string());
    command.arg("--http").arg(other_ports.http.to_string());
    command.arg("--admin").arg(other_ports.admin.to_string());
    let mut second = Binary::spawn(command);
    let status = second.wait();
    assert!(!status.success());
    let output = second.output();
    assert!(
        output.contains("already") && output.contains(installation.data_dir().to_str().unwrap()),
        "{output}"
    );

    let message = smtp::message("a@client.example", "hello", "");
    let reply = send_mail(installation.smtp, "a@client.example", "new@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "the first process still works");
}

#[tokio::test(flavor = "multi_thread")]
async fn finishes_open_mail_transactions_after_sigterm() {
    let installation = UpInstallation::new();
    let mut server = installation.up(&[]);
    let mut in_flight = SmtpClient::connect_with_ehlo(installation.smtp).await;
    in_flight.expect_positive("MAIL FROM:<a@client.example>").await;
    in_flight.expect_positive("RCPT TO:<in-flight@inbox.localhost>").await;
    in_flight.expect_positive("DATA").await;
    let mut idle = SmtpClient::connect_with_ehlo(installation.smtp).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(idle.reply().await.code, 421, "an idle session is closed");
    in_flight.send(smtp::dot_stuffed(&smtp::message("a@client.example", "in flight", ""))).await;
    assert_eq!(in_flight.reply().await.code, 250);
    assert!(server.wait().success(), "{}", server.output());

    let _server = installation.up(&[]);
    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let url = format!("http://{}/v1/inbox/in-flight@inbox.localhost", installation.http);
    assert_eq!(get(url, &token).await.expect(200)["emails"][0]["subject"], "in flight");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_an_invalid_setting_in_one_sentence() {
    let installation = UpInstallation::new();
    for (name, value) in [("TEMPMAIL_SMTP__NONSENSE", "1"), ("TEMPMAIL_SMTP__CONNECTIONS", "many")] {
        let mut command = installation.command();
        command.env(name, value);
        let mut server = Binary::spawn(command);
        assert!(!server.wait().success(), "{name}");
        let output = server.output();
        assert!(output.lines().count() <= 3 && !output.contains("panicked"), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_with_a_warning_where_a_removed_setting_is_set() {
    let installation = UpInstallation::new();
    let mut server = installation.up(&[("TEMPMAIL_COMPAT__MAILTM__LISTEN", "127.0.0.1:1")]);
    let warnings = server.stderr().matches("`compat.mailtm` is ignored").count();
    assert_eq!(warnings, 1, "{}", server.output());
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());
}
