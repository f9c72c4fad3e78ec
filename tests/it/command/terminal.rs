//! A terminal obeys control characters, so those of a mail are made visible on one.

use std::process::Command;

use tempmail_tests::binary::program;
use tempmail_tests::{App, send_mail};

use super::mail;

/// Clears the screen, sets the title, and shows `exe.txt` as `txt.exe`.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}b\u{9b}31m \u{202e}txt.exe\u{202c}";

/// Runs a command on a terminal, and returns what the terminal gets.
async fn on_a_terminal(app: &App, arguments: &str) -> String {
    let url = format!("http://{}", app.http());
    let mut command = Command::new("script");
    command
        .args([
            "--quiet",
            "--return",
            "--command",
            &format!("{} mail {arguments}", program().display()),
            "/dev/null",
        ])
        .env("TEMPMAIL_CLIENT_URL", url)
        .env("TEMPMAIL_CLIENT_TOKEN", &app.tenant.live)
        .stdin(std::process::Stdio::null());
    let output =
        tokio::task::spawn_blocking(move || command.output()).await.unwrap().expect("`script` is installed");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_control_characters_of_mail_as_text() {
    let app = App::start().await;
    let subject =
        format!("=?utf-8?q?{}?=", HOSTILE.bytes().map(|byte| format!("={byte:02X}")).collect::<String>());
    let message = format!(
        "From: Ada <ada@client.example>\r\nSubject: {subject}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        base64(HOSTILE)
    );
    let reply = send_mail(app.smtp(), "a@client.example", "ship@inbox.localhost", message.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let id = app.emails("ship@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();

    for arguments in [
        format!("read {id}"),
        "list ship@inbox.localhost".to_owned(),
        "wait ship@inbox.localhost".to_owned(),
        format!("read --json {id}"),
    ] {
        let shown = on_a_terminal(&app, &arguments).await;
        assert!(shown.contains("txt.exe"), "{arguments}: {shown}");
        let obeyed: Vec<char> = shown
            .chars()
            .filter(|character| {
                character.is_control() && !"\r\n".contains(*character) || *character == '\u{202e}'
            })
            .collect();
        assert!(obeyed.is_empty(), "{arguments}: {obeyed:?} in {shown:?}");
    }
    // A file gets the text as it is.
    let read = mail(&app, &["read", &id]).await;
    assert!(read.success().ends_with(HOSTILE), "{:?}", read.stdout);
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
