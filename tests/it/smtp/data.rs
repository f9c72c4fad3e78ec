//! DATA and BDAT (RFC 3030), and mails of every size.

use futures_util::future::join_all;
use tempmail_tests::{App, SmtpClient, send_mail, smtp};

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
    let reply = send_mail(app.smtp(), "a@client.example", "data@inbox.localhost", message).await;
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
    let reply = send_mail(app.smtp(), "a@client.example", "data@inbox.localhost", message).await;
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

/// Text of so many octets that compression does not make small.
fn noise(octets: usize) -> String {
    let mut text = String::with_capacity(octets + 34);
    while text.len() < octets {
        text.push_str(&uuid::Uuid::new_v4().simple().to_string());
        text.push_str("\r\n");
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_small_medium_large_and_bulky_mail_that_arrives_at_once() {
    let app = App::start().await;
    let sizes = [0, 40_000, 200_000, 1_000_000, 4_000_000];
    let mails = sizes.iter().enumerate().flat_map(|(class, octets)| (0..4).map(move |i| (class, i, *octets)));
    let sends = mails.map(|(class, i, octets)| {
        let app = &app;
        async move {
            let message = smtp::message("a@client.example", "sized", &noise(octets));
            send_mail(app.smtp(), "a@client.example", &format!("s{class}-{i}@inbox.localhost"), &message)
                .await
        }
    });
    let recipients: Vec<String> = (0..50).map(|i| format!("many{i}@inbox.localhost")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let to_many = async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        let message = smtp::message("a@client.example", "to many", "");
        client.transact("a@client.example", &recipients, &message).await
    };
    let (replies, to_many) = tokio::join!(join_all(sends), to_many);
    assert!(replies.iter().chain([&to_many]).all(|reply| reply.code == 250), "{replies:?} {to_many:?}");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 20 + 50);
}
