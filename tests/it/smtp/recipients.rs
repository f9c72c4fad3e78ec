//! Recipients: the replies to RCPT, and who gets the mail.

use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient, rows, send_mail, smtp};

#[tokio::test(flavor = "multi_thread")]
async fn replies_to_each_kind_of_recipient() {
    let app = App::start().await;
    let suspended = app.another_tenant("suspended").await;
    app.mailbox(Some(&suspended.pro), "frozen@inbox.localhost").await;
    app.custom_domain(&suspended, "frozen.example").await;
    app.custom_domain(&app.tenant, "ships.example").await;
    app.system_domain("closed.localhost", false).await;
    rows::suspend_tenant(&app.pool, suspended.id).await;
    wait_for_postmaster(&app).await;
    let long = format!("{}@inbox.localhost", "x".repeat(65));
    let longest = format!("{}@inbox.localhost", "x".repeat(64));
    for (recipient, expected) in [
        ("a@inbox.localhost", "250 2.1.5"),
        ("A.b-c_d+e@INBOX.localhost.", "250 2.1.5"),
        ("!#$%&'*+-/=?^_`{|}~@inbox.localhost", "250 2.1.5"),
        (longest.as_str(), "250 2.1.5"),
        ("\"quoted\"@inbox.localhost", "250 2.1.5"),
        ("@relay.example,@b.example:a@inbox.localhost", "250 2.1.5"),
        ("any@ships.example", "250 2.1.5"),
        ("admin@ships.example", "250 2.1.5"),
        ("postmaster", "250 2.1.5"),
        ("PostMaster", "250 2.1.5"),
        ("postmaster@inbox.localhost", "250 2.1.5"),
        ("abuse+x@inbox.localhost", "250 2.1.5"),
        ("a@elsewhere.example", "550 5.7.1"),
        ("a@sub.inbox.localhost", "550 5.7.1"),
        ("a@localhost", "550 5.7.1"),
        ("a@[127.0.0.1]", "550 5.7.1"),
        ("postmaster@elsewhere.example", "550 5.7.1"),
        ("admin@inbox.localhost", "550 5.1.1"),
        ("Root+tag@inbox.localhost", "550 5.1.1"),
        ("mailer-daemon@inbox.localhost", "550 5.1.1"),
        ("a@closed.localhost", "550 5.1.1"),
        ("frozen@inbox.localhost", "550 5.2.1"),
        ("any@frozen.example", "550 5.2.1"),
        ("\"a b\"@inbox.localhost", "553 5.1.3"),
        ("\"a@b\"@inbox.localhost", "553 5.1.3"),
        ("a..b@inbox.localhost", "553 5.1.3"),
        (".a@inbox.localhost", "553 5.1.3"),
        ("a@", "553 5.1.3"),
        ("@inbox.localhost", "553 5.1.3"),
        ("abuse", "553 5.1.3"),
        ("a@@inbox.localhost", "553 5.1.3"),
        (long.as_str(), "553 5.1.3"),
        ("\u{e9}@inbox.localhost", "553 5.6.7"),
        ("\u{e9}@ships.example", "250 2.1.5"),
    ] {
        // RCPT may use an acceptance that was cached for 5 s, so the expected status comes eventually.
        eventually(&format!("{recipient} gets {expected}"), || async {
            let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
            client.expect_positive("MAIL FROM:<a@client.example> SMTPUTF8").await;
            let reply = client.command(&format!("RCPT TO:<{recipient}>")).await;
            assert!(reply.is_positive() || reply.status() == expected, "{recipient}: {reply:?}");
            (reply.status() == expected).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_smtputf8_for_an_address_outside_ascii() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    let reply = client.command("RCPT TO:<\u{e9}@ships.example>").await;
    assert_eq!(reply.status(), "553 5.6.7");
    client.expect_positive("RCPT TO:<ascii@ships.example>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_a_sender_outside_ascii_needs() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.command("MAIL FROM:<\u{e9}@client.example>").await;
    assert_eq!(reply.status(), "553 5.6.7");
    assert!(format!("{reply:?}").contains("SMTPUTF8"), "{reply:?}");
    // Latin-1.
    client.send(&b"MAIL FROM:<\xe9@client.example> SMTPUTF8\r\n"[..]).await;
    assert_eq!(client.reply().await.status(), "553 5.6.7");
    client.expect_positive("MAIL FROM:<\u{e9}@client.example> SMTPUTF8").await;
    client.expect_positive("RCPT TO:<ascii@inbox.localhost>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_recipient_does_not_affect_the_others() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    for (recipient, code) in [
        ("one@inbox.localhost", 250),
        ("x@elsewhere.example", 550),
        ("admin@inbox.localhost", 550),
        ("two@inbox.localhost", 250),
    ] {
        assert_eq!(client.command(&format!("RCPT TO:<{recipient}>")).await.code, code);
    }
    client.expect_positive("DATA").await;
    client.send(smtp::dot_stuffed(&smtp::message("a@client.example", "both", ""))).await;
    assert_eq!(client.reply().await.code, 250);
    for recipient in ["one@inbox.localhost", "two@inbox.localhost"] {
        assert_eq!(app.emails(recipient).await[0]["subject"], "both");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_100_recipients_and_defers_further_ones() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    for i in 1..=100 {
        client.expect_positive(&format!("RCPT TO:<r{i}@inbox.localhost>")).await;
    }
    let reply = client.command("RCPT TO:<r101@inbox.localhost>").await;
    assert_eq!(reply.status(), "452 4.5.3");
    client.expect_positive("DATA").await;
    client.send(smtp::dot_stuffed(&smtp::message("a@client.example", "hundred", ""))).await;
    assert_eq!(client.reply().await.code, 250);
    assert_eq!(app.count("SELECT count(*) FROM message").await, 100);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1, "raw data is stored once");
    assert_eq!(app.count("SELECT count(DISTINCT id) FROM message").await, 100);
    for i in [1, 50, 100] {
        assert_eq!(app.emails(&format!("r{i}@inbox.localhost")).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_mail_for_postmaster_without_a_domain_to_the_platform() {
    let app = App::start().await;
    let message = smtp::message("a@client.example", "help", "");
    wait_for_postmaster(&app).await;
    let reply = send_mail(app.smtp(), "a@client.example", "postmaster", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let platform = app.platform_token().await;
    assert_eq!(app.emails_as(&platform, "postmaster@inbox.localhost").await[0]["subject"], "help");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_mail_as_soon_as_a_domain_is_no_longer_served() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.deliver("a@ships.example", "before", "").await;
    app.end_verification(domain).await;
    // RCPT may use an acceptance that was cached for 5 s; the end of data does not.
    let message = smtp::message("a@client.example", "after", "");
    let reply = send_mail(app.smtp(), "a@client.example", "a@ships.example", &message).await;
    assert!(!reply.is_positive(), "{reply:?}");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_mail_as_soon_as_a_domain_or_mailbox_exists() {
    let app = App::start().await;
    let message = smtp::message("a@client.example", "now", "");
    let send = || send_mail(app.smtp(), "a@client.example", "a@ships.example", &message);
    assert_eq!(send().await.status(), "550 5.7.1");
    app.custom_domain(&app.tenant, "ships.example").await;
    assert_eq!(send().await.code, 250, "rejections are not cached");
    let mailbox = app.mailbox(Some(&app.tenant.pro), "a@ships.example").await;
    assert_eq!(send().await.code, 250);
    assert_eq!(app.messages(&mailbox).await.len(), 1);
}

/// The default domain is read every two seconds; until then the recipient is deferred.
async fn wait_for_postmaster(app: &App) {
    eventually("the default domain is known", || async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.expect_positive("MAIL FROM:<>").await;
        (client.command("RCPT TO:<postmaster>").await.code == 250).then_some(())
    })
    .await;
}
