//! Message data: limits, line ends, and unusual messages.

use tempmail_tests::{App, SmtpClient, smtp};

const EVIL: &str = "MAIL FROM:<evil@client.example>\r\nRCPT TO:<victim@inbox.localhost>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n";

/// A client after the reply to DATA.
async fn client_in_data(app: &App) -> SmtpClient {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<data@inbox.localhost>").await;
    client.expect_positive("DATA").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_smuggling_by_a_false_end_of_data() {
    let app = App::start().await;
    for end in [
        "\n.\n",
        "\n.\r\n",
        "\r.\r",
        "\r.\r\n",
        "\r\n.\n",
        "\r\n.\r",
        "\n.\r",
        "\r.\n",
        "\r\n\n.\r\n",
        "\r\n.\r\r\n",
        "\r\r\n.\r\r\n",
        "\n\n.\n\n",
        "\r\n.\u{0}\r\n\n",
    ] {
        let mut client = client_in_data(&app).await;
        client.send(format!("Subject: carrier\r\n\r\nbody{end}{EVIL}.\r\n")).await;
        assert_eq!(client.reply().await.status(), "554 5.6.0", "{end:?}");
        client.send("NOOP\r\n").await;
        assert_eq!(client.reply().await.status(), "250 2.0.0", "one message, one reply: {end:?}");
    }
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_message_that_is_too_big_by_its_size_parameter_or_its_data() {
    let app = App::builder().config(|config| config.smtp.max_message_bytes = 100_000).start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.command("MAIL FROM:<a@client.example> SIZE=100001").await;
    assert_eq!(reply.status(), "552 5.3.4");
    let reply = client.command("MAIL FROM:<a@client.example> SIZE=99999999999999999999").await;
    assert_eq!(reply.status(), "552 5.3.4");
    client.expect_positive("MAIL FROM:<a@client.example> SIZE=100000").await;
    client.expect_positive("RSET").await;

    let head = "Subject: big\r\n\r\n";
    for (length, expected) in [(100_000, "250 2.0.0"), (100_001, "552 5.3.4"), (3_000_000, "552 5.3.4")] {
        let mut message = head.to_owned();
        while message.len() + 102 <= length {
            message.push_str(&format!("{}\r\n", "x".repeat(100)));
        }
        let rest = length - message.len();
        if rest >= 2 {
            message.push_str(&format!("{}\r\n", "x".repeat(rest - 2)));
        } else {
            message.insert_str(0, &"Y"[..rest]);
        }
        assert_eq!(message.len(), length);
        let reply = client.transact("a@client.example", &["data@inbox.localhost"], message.as_bytes()).await;
        assert_eq!(reply.status(), expected, "{length}");
    }
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_lines_of_up_to_64_kib() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for (length, expected) in [(998, "250 2.0.0"), (65_000, "250 2.0.0"), (66_000, "554 5.6.0")] {
        let message = format!("Subject: long\r\n\r\n{}\r\n", "x".repeat(length));
        let reply = client.transact("a@client.example", &["data@inbox.localhost"], message.as_bytes()).await;
        assert_eq!(reply.status(), expected, "{length}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_header_section_to_256_kib_and_1000_fields() {
    let app = App::start().await;
    let fields = |n: usize| "X-F: y\r\n".repeat(n) + "\r\nbody\r\n";
    let octets = |n: usize| format!("X-F: y\r\n {}\r\n", "z".repeat(1000)).repeat(n / 1010) + "\r\nbody\r\n";
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for (message, expected) in [
        (fields(1000), "250 2.0.0"),
        (fields(1001), "552 5.3.4"),
        (octets(250 << 10), "250 2.0.0"),
        (octets(260 << 10), "552 5.3.4"),
        ("no header at all ".repeat(60) + "\r\n", "250 2.0.0"),
    ] {
        let reply = client.transact("a@client.example", &["data@inbox.localhost"], message.as_bytes()).await;
        assert_eq!(reply.status(), expected, "{} octets", message.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_nul_in_the_raw_data_and_replaces_it_in_text() {
    let app = App::start().await;
    let message = b"From: a\0b <a@client.example>\r\nSubject: nu\0l\r\n\r\nbo\0dy\r\n";
    let reply =
        tempmail_tests::send_mail(app.smtp(), "a@client.example", "data@inbox.localhost", message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let email = app.emails("data@inbox.localhost").await[0].clone();
    assert_eq!(email["subject"], "nu\u{fffd}l");
    let path = format!("/v1/email/{}", email["id"].as_str().unwrap());
    assert!(app.get(&format!("{path}/raw")).await.body.ends_with(message));
    let answer = app.get(&path).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("\\u0000"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_an_empty_message() {
    let app = App::start().await;
    let mut client = client_in_data(&app).await;
    client.send(".\r\n").await;
    assert_eq!(client.reply().await.status(), "250 2.0.0");
    let email = &app.emails("data@inbox.localhost").await[0];
    assert_eq!((&email["subject"], &email["from_email"]), (&"".into(), &"".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn truncates_summaries_and_removes_control_characters() {
    let app = App::start().await;
    let message = format!(
        "From: \"x\u{1b}[31m\u{7}\" <a@client.example>\r\nSubject: {}\r\n\r\n{}\r\n",
        "s".repeat(5000),
        "w ".repeat(300)
    );
    deliver(&app, message.as_bytes()).await;
    let email = app.emails("data@inbox.localhost").await[0].clone();
    assert_eq!(email["subject"].as_str().unwrap().chars().count(), 1000);
    assert_eq!(email["preview_text"].as_str().unwrap().chars().count(), 100);
    let path = format!("/v1/email/{}", email["id"].as_str().unwrap());
    let from = app.get(&path).await.expect(200)["from"].as_str().unwrap().to_owned();
    assert!(!from.chars().any(char::is_control), "{from:?}");
}

async fn deliver(app: &App, message: &[u8]) {
    let reply =
        tempmail_tests::send_mail(app.smtp(), "a@client.example", "data@inbox.localhost", message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_compressed_data_without_recipients() {
    let app = App::start().await;
    deliver(&app, &smtp::message("a@client.example", "x", "")).await;
    let (mail, data): (uuid::Uuid, Vec<u8>) =
        sqlx::query_as("SELECT mail, data FROM raw").fetch_one(&app.pool).await.unwrap();
    assert!(!mail.is_nil());
    assert!(!data.windows(5).any(|window| window == b"data@"), "compressed data is no plain text");
}
