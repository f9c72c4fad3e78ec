//! BDAT (RFC 3030).

use tempmail_tests::{App, SmtpClient};

/// A client with an accepted recipient.
async fn client_with_recipient(app: &App) -> SmtpClient {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<chunk@inbox.localhost>").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_chunks_and_keeps_their_dots() {
    let app = App::start().await;
    let mut client = client_with_recipient(&app).await;
    client.send("BDAT 18\r\nSubject: chunks\r\n\r").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    client.send("BDAT 4\r\n\n.\r\nBDAT 8 LAST\r\n..end\r\n\r").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.reply().await.status(), "554 5.6.0", "a CR at the very end is bare");

    let mut client = client_with_recipient(&app).await;
    client.send("BDAT 19\r\nSubject: chunks\r\n\r\nBDAT 10\r\n.\r\n..end\r\nBDAT 0 LAST\r\n").await;
    for _ in 0..3 {
        assert_eq!(client.reply().await.status(), "250 2.0.0");
    }
    let emails = app.emails("chunk@inbox.localhost").await;
    assert_eq!(emails.len(), 1);
    let raw = app.get(&format!("/v1/email/{}/raw", emails[0]["id"].as_str().unwrap())).await.text();
    assert!(raw.ends_with("\r\nSubject: chunks\r\n\r\n.\r\n..end\r\n"), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_chunks_for_bare_line_ends_and_size() {
    let app = App::builder().config(|config| config.smtp.max_message_bytes = 1000).start().await;
    for chunk in ["Subject: x\n\r\nb\r\n", "Subject: x\r\n\r\nb\r\r\n", "a\rb\r\n"] {
        let mut client = client_with_recipient(&app).await;
        client.send(format!("BDAT {} LAST\r\n{chunk}NOOP\r\n", chunk.len())).await;
        assert_eq!(client.reply().await.status(), "554 5.6.0", "{chunk:?}");
        assert_eq!(client.reply().await.status(), "250 2.0.0");
    }
    let mut client = client_with_recipient(&app).await;
    client.send(format!("BDAT 1001 LAST\r\n{}NOOP\r\n", "x".repeat(1001))).await;
    assert_eq!(client.reply().await.status(), "552 5.3.4");
    assert_eq!(client.reply().await.status(), "250 2.0.0", "the rejected chunk is not parsed as commands");
    let mut client = client_with_recipient(&app).await;
    client.send(format!("BDAT 600\r\n{0}BDAT 600 LAST\r\n{0}NOOP\r\n", "x".repeat(600))).await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.reply().await.status(), "552 5.3.4");
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reserves_no_memory_for_an_announced_chunk() {
    let app = App::start().await;
    let mut client = client_with_recipient(&app).await;
    client.send("BDAT 18446744073709551615 LAST\r\n").await;
    client.send(vec![b'x'; 100_000]).await;
    drop(client);
    app.deliver("after@inbox.localhost", "served", "").await;
}
