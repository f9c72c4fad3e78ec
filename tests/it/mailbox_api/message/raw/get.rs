//! `GET /api/messages/{id}/raw`

use tempmail_tests::App;

use super::super::{FILE, with_a_file};

#[tokio::test(flavor = "multi_thread")]
async fn serves_the_message_as_received() {
    let app = App::start().await;
    let (mailbox, path) = with_a_file(&app).await;
    let raw = app.get_mailbox(&mailbox, &format!("{path}/raw")).await;
    assert_eq!((raw.status, raw.media_type()), (200, "message/rfc822"));
    assert!(
        raw.text().ends_with(FILE) && raw.text().contains("for <name@inbox.localhost>"),
        "{}",
        raw.text()
    );
    assert_eq!(app.messages(&mailbox).await[0]["size"], raw.body.len());
    let id = path.rsplit('/').next().unwrap();
    let disposition = raw.header("content-disposition");
    assert_eq!(disposition, format!("attachment; filename=\"{id}.eml\""));
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert!(raw.header("content-security-policy").contains("sandbox"));
}
