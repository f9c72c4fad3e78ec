//! The command line as a client of a server: `tempmail mail`.

mod completions;
mod configuration;
mod exit_code;
mod manage;
mod network;
mod terminal;
mod wait;

use std::path::Path;

use serde_json::Value;
use tempmail_tests::{App, CommandOutput};

/// Runs `tempmail mail` with these arguments as the tenant of the test.
async fn mail(app: &App, arguments: &[&str]) -> CommandOutput {
    mail_as(app, &app.tenant.live, arguments).await
}

/// The same with another token.
async fn mail_as(app: &App, live: &str, arguments: &[&str]) -> CommandOutput {
    let url = format!("http://{}", app.http());
    let arguments: Vec<&str> = std::iter::once("mail").chain(arguments.iter().copied()).collect();
    CommandOutput::run(&arguments, &[("TEMPMAIL_CLIENT_URL", &url), ("TEMPMAIL_CLIENT_TOKEN", live)]).await
}

/// Runs `tempmail mail` with these arguments where nothing but the data directory of an `up` says which server is meant.
async fn mail_beside_up(data_dir: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
    let directory = data_dir.to_str().expect("our paths are UTF-8");
    let arguments: Vec<&str> =
        ["mail", "--data-dir", directory].into_iter().chain(arguments.iter().copied()).collect();
    let mut all = vec![("HOME", directory)];
    all.extend(environment);
    CommandOutput::run(&arguments, &all).await
}

/// The exit code of a command that failed, and its message; with `--json`, what it printed.
fn failure(output: &CommandOutput) -> (i32, &str, Value) {
    let message = output.stderr.strip_prefix("tempmail: ").and_then(|text| text.strip_suffix('\n'));
    let message =
        message.unwrap_or_else(|| panic!("an error is one line with our prefix: {}", output.stderr));
    let printed =
        if output.stdout.is_empty() { Value::Null } else { serde_json::from_str(&output.stdout).unwrap() };
    (output.code.expect("the command exits"), message, printed)
}
