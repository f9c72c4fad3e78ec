//! `tempmail check`: whether mail that goes in over SMTP comes out over HTTP.

use tempmail_tests::port::free_port;
use tempmail_tests::{App, CommandOutput};

async fn check(app: &App, smtp: &str, seconds: &str) -> CommandOutput {
    let http = format!("http://{}", app.http());
    CommandOutput::run(&["check", "--smtp", smtp, "--http", &http, "--timeout-seconds", seconds], &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_a_mail_receives_it_and_leaves_no_mailbox() {
    let app = App::start().await;
    let checked = check(&app, &app.smtp().to_string(), "60").await;
    let said: Vec<&str> = checked.success().lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(said, ["created", "sent", "received"]);
    assert_eq!(app.count("SELECT count(*) FROM mailbox WHERE removed_at IS NULL").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn says_which_stage_failed() {
    let app = App::start().await;
    let closed = free_port().to_string();
    // So long that the mailbox is made in time on a busy machine.
    let refused = check(&app, &closed, "10").await;
    let sentence = format!("tempmail: the mail was not accepted by {closed}");
    assert!(refused.code == Some(1) && refused.stderr.starts_with(&sentence), "{}", refused.stderr);
    assert_eq!(app.count("SELECT count(*) FROM mailbox WHERE removed_at IS NULL").await, 0);
    let url = format!("http://{closed}");
    let refused = CommandOutput::run(&["check", "--http", &url, "--timeout-seconds", "2"], &[]).await;
    assert!(refused.failure().starts_with("no mailbox"), "{}", refused.stderr);
}
