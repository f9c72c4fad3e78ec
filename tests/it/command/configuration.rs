//! Which server the command uses, and with which token.

use std::fs::{Permissions, create_dir_all, set_permissions, write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::{App, Binary, CommandOutput};

use super::{failure, mail_beside_up};

const LIST: [&str; 3] = ["list", "--json", "a@inbox.localhost"];

/// Writes the configuration file of a home directory.
fn write_file(home: &Path, text: &str, mode: u32) -> PathBuf {
    let path = home.join(".config/tempmail/client.json");
    create_dir_all(path.parent().unwrap()).unwrap();
    write(&path, text).unwrap();
    set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

fn client_file(url: &str, token: &str) -> String {
    json!({"url": url, "token": token}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_the_running_up_without_any_setup() {
    let installation = UpInstallation::new();
    let mut server =
        installation.up(&[("TEMPMAIL_CLIENT_URL", "http://localhost:1"), ("TEMPMAIL_CLIENT_TOKEN", "x")]);
    let directory = installation.data_dir();
    let listed = mail_beside_up(&directory, &[], &LIST).await.json();
    assert_eq!(listed["emails"], json!([]));

    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());
    let stopped = mail_beside_up(&directory, &[], &LIST).await;
    assert_eq!(failure(&stopped).0, 5, "{}", stopped.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_the_token_of_up_to_loopback_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("credentials.json");
    let token = format!("tm_live_{}", "0".repeat(64));
    let credentials =
        json!({"base_url": "https://mail.example", "smtp": "", "pro_token": "", "live_token": token});
    write(&path, credentials.to_string()).unwrap();
    set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let refused = mail_beside_up(directory.path(), &[], &LIST).await;
    let (code, message, printed) = failure(&refused);
    assert!(
        code == 2 && message.contains("is for https://mail.example, which is not this machine"),
        "{message}"
    );
    assert_eq!(printed["error"], "usage");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_comes_before_the_file_and_the_file_before_up() {
    let app = App::start().await;
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://{}", app.http());
    write_file(home.path(), &client_file(&url, &app.tenant.live), 0o600);
    assert_eq!(mail_beside_up(home.path(), &[], &LIST).await.json()["emails"], json!([]));
    // `XDG_CONFIG_HOME` is another directory, which has none.
    let elsewhere = home.path().join("elsewhere");
    let none = mail_beside_up(home.path(), &[("XDG_CONFIG_HOME", elsewhere.to_str().unwrap())], &LIST).await;
    let (code, message, _) = failure(&none);
    assert!(code == 2 && message.starts_with("no server is known: set TEMPMAIL_CLIENT_URL"), "{message}");
    assert!(message.contains("elsewhere/tempmail/client.json"), "{message}");

    write_file(home.path(), &client_file("http://127.0.0.1:1", &app.tenant.live), 0o600);
    assert_eq!(failure(&mail_beside_up(home.path(), &[], &LIST).await).0, 5);
    let environment = [("TEMPMAIL_CLIENT_URL", url.as_str()), ("TEMPMAIL_CLIENT_TOKEN", &app.tenant.live)];
    assert_eq!(mail_beside_up(home.path(), &environment, &LIST).await.json()["emails"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_file_that_others_may_read_and_quotes_none() {
    let home = tempfile::tempdir().unwrap();
    let token = format!("tm_live_{}", "5ec2e7".repeat(11));
    for (text, mode, expected) in [
        (client_file("http://127.0.0.1:1", &token), 0o644, "has a token and others may read it: `chmod 600 "),
        (client_file("http://127.0.0.1:1", &token), 0o600, "a live token is `tm_live_` and 64 digits"),
        (
            client_file(&format!("http://{token}@127.0.0.1:1"), &token[..72]),
            0o600,
            "the base URL must be http",
        ),
        (
            format!("{{\"url\": \"http://127.0.0.1:1\", \"tokn\": \"{token}\"}}"),
            0o600,
            "is not JSON of the form",
        ),
        (token.clone(), 0o600, "is not JSON of the form"),
    ] {
        write_file(home.path(), &text, mode);
        let refused = mail_beside_up(home.path(), &[], &["list", "a@inbox.localhost"]).await;
        let (code, message, _) = failure(&refused);
        assert!(code == 2 && message.contains(expected), "{message}");
        assert!(!message.contains("5ec2e7"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_half_an_environment_and_a_misspelt_one() {
    let home = tempfile::tempdir().unwrap();
    for (variable, expected) in [
        ("TEMPMAIL_CLIENT_URL", "TEMPMAIL_CLIENT_URL is set, and TEMPMAIL_CLIENT_TOKEN is not"),
        ("TEMPMAIL_CLIENT_TOKEN", "TEMPMAIL_CLIENT_TOKEN is set, and TEMPMAIL_CLIENT_URL is not"),
        ("TEMPMAIL_CLIENT_TOKN", "the environment variable TEMPMAIL_CLIENT_TOKN is unknown"),
    ] {
        let refused =
            mail_beside_up(home.path(), &[(variable, "hush")], &["list", "a@inbox.localhost"]).await;
        let (code, message, _) = failure(&refused);
        assert!(code == 2 && message.starts_with(expected) && !message.contains("hush"), "{message}");
    }
}

#[tokio::test]
async fn takes_no_token_as_an_argument() {
    for argument in ["--token", "--api-token"] {
        let refused = CommandOutput::run(&["mail", argument, "x", "list", "a@inbox.localhost"], &[]).await;
        assert!(refused.usage_error().contains(argument), "{}", refused.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_ignore_the_variables_of_clients_and_no_others() {
    let installation = UpInstallation::new();
    let mut command = installation.command();
    command.env("TEMPMAIL_CLIENT_URI", "http://localhost:1");
    let mut refused = Binary::spawn(command);
    assert!(!refused.wait().success());
    assert!(refused.stderr().contains("TEMPMAIL_CLIENT_URI sets no key"), "{}", refused.stderr());
}
