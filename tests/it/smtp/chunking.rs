//! BDAT (RFC 3030).

use tempmail_tests::{App, SmtpClient};

async fn ready(app: &App) -> SmtpClient {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<chunk@inbox.localhost>").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_joined_and_dots_are_text() {
    let app = App::start().await;
    let mut client = ready(&app).await;
    client.send("BDAT 18\r\nSubject: chunks\r\n\r").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    client.send("BDAT 4\r\n\n.\r\nBDAT 8 LAST\r\n..end\r\n\r").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.reply().await.status(), "554 5.6.0", "a CR at the very end is bare");

    let mut client = ready(&app).await;
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
async fn the_rules_of_data_cover_chunks() {
    let app = App::builder().config(|config| config.smtp.max_message_bytes = 1000).start().await;
    for chunk in ["Subject: x\n\r\nb\r\n", "Subject: x\r\n\r\nb\r\r\n", "a\rb\r\n"] {
        let mut client = ready(&app).await;
        client.send(format!("BDAT {} LAST\r\n{chunk}NOOP\r\n", chunk.len())).await;
        assert_eq!(client.reply().await.status(), "554 5.6.0", "{chunk:?}");
        assert_eq!(client.reply().await.status(), "250 2.0.0");
    }
    let mut client = ready(&app).await;
    client.send(format!("BDAT 1001 LAST\r\n{}NOOP\r\n", "x".repeat(1001))).await;
    assert_eq!(client.reply().await.status(), "552 5.3.4");
    assert_eq!(client.reply().await.status(), "250 2.0.0", "the refused chunk was no command");
    let mut client = ready(&app).await;
    client.send(format!("BDAT 600\r\n{0}BDAT 600 LAST\r\n{0}NOOP\r\n", "x".repeat(600))).await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.reply().await.status(), "552 5.3.4");
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_without_a_recipient_and_data_among_chunks_are_refused() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.send("BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n").await;
    assert_eq!(client.reply().await.status(), "503 5.5.1");
    assert_eq!(client.reply().await.status(), "250 2.0.0", "the octets of the chunk are not commands");
    let mut client = ready(&app).await;
    client.send("BDAT 2\r\n\r\n").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.command("DATA").await.status(), "503 5.5.1");
    assert_eq!(client.command("RCPT TO:<b@inbox.localhost>").await.status(), "503 5.5.1");
    client.expect_positive("RSET").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_whose_size_is_unknown_ends_the_session() {
    let app = App::start().await;
    for command in ["BDAT", "BDAT x", "BDAT -1", "BDAT 5 FIRST", "BDAT +5 LAST"] {
        let mut client = ready(&app).await;
        client.send(format!("{command}\r\nRCPT TO:<evil@inbox.localhost>\r\n")).await;
        assert_eq!(client.reply().await.status(), "501 5.5.4", "{command}");
        assert_eq!(client.try_reply().await, None, "{command}: what follows can't be told from commands");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_announced_chunk_takes_no_memory() {
    let app = App::start().await;
    let mut client = ready(&app).await;
    client.send("BDAT 18446744073709551615 LAST\r\n").await;
    client.send(vec![b'x'; 100_000]).await;
    drop(client);
    app.deliver("after@inbox.localhost", "served", "").await;
}
