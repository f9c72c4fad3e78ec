//! STARTTLS (RFC 3207), with a TLS client.

use tempmail_runtime::file_watch;
use tempmail_tests::tls::TestCertificate;
use tempmail_tests::{App, SmtpClient, smtp};

async fn start_with_certificate() -> (App, TestCertificate) {
    let certificate = TestCertificate::generate();
    let (cert, key) = (certificate.cert_path(), certificate.key_path());
    let app = App::builder()
        .config(|config| {
            config.smtp.tls.cert = Some(cert);
            config.smtp.tls.key = Some(key);
        })
        .start()
        .await;
    (app, certificate)
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_mail_over_tls() {
    let (app, certificate) = start_with_certificate().await;
    let mut client = SmtpClient::connect(app.smtp()).await;
    assert!(client.expect_positive("EHLO client.example").await.lines.contains(&"STARTTLS".to_owned()));
    assert_eq!(client.command("STARTTLS").await.status(), "220 2.0.0");
    let mut client = certificate.start_tls(client).await;
    let extensions = client.expect_positive("EHLO client.example").await.lines;
    assert!(!extensions.contains(&"STARTTLS".to_owned()), "{extensions:?}");
    assert_eq!(client.command("STARTTLS").await.status(), "503 5.5.1");
    let message = smtp::message("a@client.example", "secret", "");
    let reply = client.transact("a@client.example", &["tls@inbox.localhost"], &message).await;
    assert_eq!(reply.code, 250);
    let id = app.emails("tls@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let raw = app.get(&format!("/v1/email/{id}/raw")).await.text();
    assert!(raw.contains(" with ESMTPS"), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_the_session_after_the_handshake() {
    let (app, certificate) = start_with_certificate().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<plain@client.example>").await;
    client.expect_positive("RCPT TO:<plain@inbox.localhost>").await;
    client.expect_positive("STARTTLS").await;
    let mut client = certificate.start_tls(client).await;
    assert_eq!(client.command("DATA").await.status(), "503 5.5.1");
    assert_eq!(client.command("MAIL FROM:<a@client.example>").await.status(), "503 5.5.1");
    client.expect_positive("EHLO client.example").await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_connection_if_data_follows_starttls() {
    let (app, _certificate) = start_with_certificate().await;
    for injected in [
        "NOOP\r\n",
        "MAIL FROM:<evil@client.example>\r\nRCPT TO:<a@inbox.localhost>\r\nDATA\r\n",
        "x",
        "\r\n",
        "\u{16}\u{3}\u{1}",
    ] {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.send(format!("STARTTLS\r\n{injected}")).await;
        let rest = client.read_to_end().await;
        assert!(!rest.contains("250") && !rest.starts_with("220"), "{injected:?}: {rest}");
    }
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_connection_after_a_failed_handshake() {
    let (app, _certificate) = start_with_certificate().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("STARTTLS").await;
    client.send("EHLO in the clear\r\nMAIL FROM:<a@client.example>\r\n").await;
    let rest = client.read_to_end().await;
    assert!(!rest.contains("250"), "{rest}");
    app.deliver("after@inbox.localhost", "served", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_offer_starttls_without_a_certificate() {
    let app = App::start().await;
    let mut client = SmtpClient::connect(app.smtp()).await;
    assert!(!client.expect_positive("EHLO client.example").await.lines.contains(&"STARTTLS".to_owned()));
    assert_eq!(client.command("STARTTLS").await.status(), "502 5.5.1");
}

/// Whether STARTTLS succeeds with a client that trusts only this certificate.
async fn is_served(app: &App, certificate: &TestCertificate) -> bool {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("STARTTLS").await;
    certificate.try_start_tls(client).await.is_some()
}

#[tokio::test]
async fn serves_a_renewed_certificate_and_keeps_it_while_the_files_are_broken() {
    let (app, files) = start_with_certificate().await;
    let [second, third] = [TestCertificate::generate(), TestCertificate::generate()];
    assert!(!is_served(&app, &second).await);
    files.renew_with(&second);
    app.jump_until("the renewed certificate is served", file_watch::PERIOD, || async {
        is_served(&app, &second).await.then_some(())
    })
    .await;

    std::fs::write(files.key_path(), "broken").unwrap();
    for _ in 0..3 {
        app.jump(file_watch::PERIOD).await;
        assert!(is_served(&app, &second).await);
    }
    files.renew_with(&third);
    app.jump_until("the certificate after broken files is served", file_watch::PERIOD, || async {
        is_served(&app, &third).await.then_some(())
    })
    .await;
}
