//! Commands and their replies.

use tempmail_tests::{App, SmtpClient};

/// Runs a session of command lines, each with the expected status of its reply.
async fn session(app: &App, lines: &[(&str, &str)]) {
    let mut client = SmtpClient::connect(app.smtp()).await;
    for (line, expected) in lines {
        let reply = client.command(line).await;
        assert_eq!(reply.status(), *expected, "{line} in {lines:?}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_extensions_after_ehlo() {
    let app = App::start().await;
    let mut client = SmtpClient::connect(app.smtp()).await;
    let mut extensions = client.command("EHLO client.example").await.lines;
    assert_eq!(extensions.remove(0).split(' ').next(), Some(tempmail_tests::tls::NAME));
    extensions.sort();
    assert_eq!(
        extensions,
        [
            "8BITMIME",
            "CHUNKING",
            "ENHANCEDSTATUSCODES",
            "LIMITS RCPTMAX=100",
            "PIPELINING",
            "SIZE 26214400",
            "SMTPUTF8"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_commands_out_of_sequence_with_503() {
    let app = App::start().await;
    session(
        &app,
        &[
            ("MAIL FROM:<a@b.example>", "503 5.5.1"),
            ("EHLO client.example", "250"),
            ("RCPT TO:<a@inbox.localhost>", "503 5.5.1"),
            ("DATA", "503 5.5.1"),
            ("MAIL FROM:<a@b.example>", "250 2.1.0"),
            ("MAIL FROM:<a@b.example>", "503 5.5.1"),
            ("DATA", "554 5.5.1"),
            ("RCPT TO:<a@inbox.localhost>", "250 2.1.5"),
            ("RSET", "250 2.0.0"),
            ("RCPT TO:<a@inbox.localhost>", "503 5.5.1"),
            ("MAIL FROM:<>", "250 2.1.0"),
            ("EHLO again.example", "250"),
            ("RCPT TO:<a@inbox.localhost>", "503 5.5.1"),
            ("NOOP anything", "250 2.0.0"),
            ("VRFY a@inbox.localhost", "252 2.5.0"),
            ("QUIT", "221 2.0.0"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn continues_after_an_invalid_command() {
    let app = App::start().await;
    for line in [
        "NONSENSE",
        "",
        " ",
        "MAIL",
        "MAIL FROM",
        "MAIL TO:<a@b.example>",
        "RCPT FROM:<a@b.example>",
        "EHLO",
        "HELO",
        "MAIL FROM:<a@b.example",
        "AUTH PLAIN AGEAYg==",
        "AUTH LOGIN",
        "EXPN staff",
        "TURN",
        "ETRN x",
        "DATA now",
        "RSET now",
        "STARTTLS",
        "GET / HTTP/1.1",
        "NOOP \u{0}",
        "MAIL FROM:<a@b.example> FOO=BAR",
        "MAIL FROM:<a@b.example> SIZE=x",
        "MAIL FROM:<a@b.example> BODY=BINARYMIME",
    ] {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        let reply = client.command(line).await;
        assert!((500..=555).contains(&reply.code), "{line}: {reply:?}");
        let good = client.expect_positive("MAIL FROM:<a@client.example>").await;
        assert_eq!(good.status(), "250 2.1.0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_line_that_is_too_long_once() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for length in [3_000, 100_000, 5_000_000] {
        client.send(format!("NOOP {}\r\n", "x".repeat(length))).await;
        assert_eq!(client.reply().await.status(), "500 5.5.2", "{length}");
        client.expect_positive("NOOP").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_with_421_after_twenty_invalid_commands() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.send(b"\x00\xff\xfe\r\nMAIL\r\n".repeat(50)).await;
    for i in 1..=20 {
        let reply = client.reply().await;
        assert!(reply.code >= 500, "{i}: {reply:?}");
    }
    assert_eq!(client.reply().await.status(), "421 4.7.0");
    assert_eq!(client.try_reply().await, None, "the connection is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_to_pipelined_commands_in_order() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client
        .send(
            "MAIL FROM:<a@client.example>\r\nRCPT TO:<one@inbox.localhost>\r\nRCPT TO:<x@elsewhere.example>\r\n\
             RCPT TO:<admin@inbox.localhost>\r\nRCPT TO:<two@inbox.localhost>\r\nDATA\r\n",
        )
        .await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(client.reply().await.status());
    }
    assert_eq!(statuses, ["250 2.1.0", "250 2.1.5", "550 5.7.1", "550 5.1.1", "250 2.1.5", "354"]);
    client.send("Subject: first\r\n\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<one@inbox.localhost>\r\nDATA\r\n").await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.reply().await.status());
    }
    assert_eq!(statuses, ["250 2.0.0", "250 2.1.0", "250 2.1.5", "354"]);
    client.send("Subject: second\r\n\r\n.\r\nQUIT\r\n").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    assert_eq!(client.reply().await.status(), "221 2.0.0");
    assert_eq!(app.emails("one@inbox.localhost").await.len(), 2);
    assert_eq!(app.emails("two@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_nothing_if_the_connection_breaks_before_the_end_of_data() {
    let app = App::start().await;
    let whole = "EHLO client.example\r\nMAIL FROM:<a@client.example>\r\nRCPT TO:<half@inbox.localhost>\r\nDATA\r\n\
                 Subject: half\r\n\r\nbody\r\n.\r";
    for cut in (0..=whole.len()).step_by(7).chain([whole.len()]) {
        let mut client = SmtpClient::connect(app.smtp()).await;
        client.send(&whole[..cut]).await;
        drop(client);
    }
    app.deliver("other@inbox.localhost", "after", "").await;
    assert_eq!(app.emails("other@inbox.localhost").await.len(), 1);
    app.assert_inbox_is_empty("half@inbox.localhost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_session_sent_byte_by_byte() {
    let app = App::start().await;
    let whole = "EHLO client.example\r\nMAIL FROM:<a@client.example>\r\nRCPT TO:<split@inbox.localhost>\r\nDATA\r\n\
                 Subject: split\r\n\r\n..dot\r\n.\r\nQUIT\r\n";
    let mut client = SmtpClient::connect(app.smtp()).await;
    for octet in whole.bytes() {
        client.send([octet]).await;
    }
    let replies = client.read_to_end().await;
    assert!(
        replies.contains("\r\n354 ") && replies.contains("\r\n250 2.0.0 ") && replies.contains("\r\n221 ")
    );
    let id = app.emails("split@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let raw = app.get(&format!("/v1/email/{id}/raw")).await.text();
    assert!(raw.ends_with("Subject: split\r\n\r\n.dot\r\n"), "{raw}");
}
