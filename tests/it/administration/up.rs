//! The commands beside a running `up`, and what the next `up` makes of what they did.

use serde_json::Value;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::{App, Binary, CommandOutput, Response, send_mail, smtp};

async fn tempmail(installation: &UpInstallation, arguments: &str) -> CommandOutput {
    let directory = installation.data_dir();
    let mut words: Vec<&str> = arguments.split(' ').collect();
    words.extend(["--data-dir", directory.to_str().unwrap()]);
    CommandOutput::run(&words, &[]).await
}

async fn get(installation: &UpInstallation, live: &str, path: &str) -> Response {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}{path}", installation.http);
    Request::new(&client, reqwest::Method::GET, &url).live(live).send().await
}

async fn domains(installation: &UpInstallation) -> Vec<String> {
    let body = get(installation, "", "/api/domains").await.expect(200);
    let domains = body["domains"].as_array().unwrap().iter();
    domains.map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
}

fn token(credentials: &Value) -> &str {
    credentials["live_token"].as_str().unwrap()
}

/// Stops it and starts it again.
fn restart(installation: &UpInstallation, server: Binary) -> Binary {
    stop(server);
    installation.up(&[])
}

fn stop(mut server: Binary) {
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_tenant_while_up_runs() {
    let installation = UpInstallation::new();
    let server = installation.up(&[]);
    tempmail(&installation, "tenant create acme").await.success();
    let made = tempmail(&installation, "token create acme --kind live").await;
    let message = smtp::message("a@client.example", "hello", "");
    let reply = send_mail(installation.smtp, "a@client.example", "new@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let answer = get(&installation, made.success(), "/v1/inbox/new@inbox.localhost").await.expect(200);
    assert_eq!(answer["emails"][0]["subject"], "hello");
    let said = server.output();
    assert!(!said.contains(made.success()), "the token is nowhere else");

    stop(server);
    let refused = tempmail(&installation, "tenant list").await;
    assert!(refused.failure().contains("no `tempmail up` is running"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_deleted_local_tenant_at_the_next_start() {
    let installation = UpInstallation::new();
    let server = installation.up(&[]);
    let before = installation.credentials();
    let local = tempmail(&installation, "tenant show local --json").await.json();
    tempmail(&installation, "tenant delete local --yes").await.success();
    let refused = get(&installation, token(&before), "/v1/inbox/a@inbox.localhost").await;
    refused.assert_v1_error(401, "invalid_token");

    let _server = restart(&installation, server);
    let after = installation.credentials();
    assert_ne!(token(&before), token(&after));
    let again = tempmail(&installation, "tenant show local --json").await.json();
    assert_ne!(local["id"], again["id"]);
    let message = smtp::message("a@client.example", "hello", "");
    let reply = send_mail(installation.smtp, "a@client.example", "a@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    assert_eq!(get(&installation, token(&after), "/v1/inbox/a@inbox.localhost").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_add_a_removed_domain_unless_requested() {
    let installation = UpInstallation::new();
    let server = installation.up(&[]);
    assert_eq!(domains(&installation).await, ["inbox.localhost"]);
    tempmail(&installation, "system-domain add other.localhost").await.success();
    tempmail(&installation, "system-domain default other.localhost").await.success();
    tempmail(&installation, "system-domain remove inbox.localhost").await.success();
    let server = restart(&installation, server);
    assert_eq!(domains(&installation).await, ["other.localhost"]);
    assert!(server.output().contains("/v1/inbox/hello@other.localhost"), "what to try is true");

    stop(server);
    let mut command = installation.command();
    command.args(["--domain", "inbox.localhost"]);
    let mut server = Binary::spawn(command);
    server.wait_for_line("ready");
    assert_eq!(domains(&installation).await, ["inbox.localhost", "other.localhost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_start_with_a_domain_of_a_tenant() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let installation = UpInstallation::new();
    let mut command = installation.command();
    command.args(["--domain", "mail.ships.example", "--postgres-url", &app.database().url()]);
    let mut server = Binary::spawn(command);
    assert!(!server.wait().success());
    let expected = "tempmail: mail.ships.example can't be a system domain: it overlaps ships.example, the custom domain of a tenant";
    assert_eq!(server.stderr(), expected);
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE tenant IS NULL").await, 1);
}
