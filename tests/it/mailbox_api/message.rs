//! `/api/messages/{id}` and what hangs below it.

mod attachments {
    mod get;
}
mod codes {
    mod get;
}
mod delete;
mod get;
mod raw {
    mod get;
}
mod read {
    mod put;
}

use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, SmtpClient};

/// A mail that is one file.
const FILE: &str = "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: application/pdf\r\n\
    Content-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n%PDF\r\n";

/// A free mailbox with [`FILE`] in it, and the path of the message.
async fn with_a_file(app: &App) -> (Mailbox, String) {
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.transact("a@client.example", &["name@inbox.localhost"], FILE.as_bytes()).await;
    assert_eq!(reply.code, 250);
    let path = format!("/api/messages/{}", app.messages(&mailbox).await[0]["id"].as_str().unwrap());
    (mailbox, path)
}
