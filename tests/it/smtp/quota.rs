//! Limits of storage: of mailboxes, addresses, tenants, shared inboxes and the installation.

use futures_util::future::join_all;
use tempmail_model::clock::Clock as _;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient, rows, send_mail, smtp};

const FULL: &str = "452 4.2.2";

async fn send(app: &App, recipient: &str, bytes: usize) -> tempmail_tests::Reply {
    let message = smtp::message("a@client.example", "filling", &noise(bytes));
    send_mail(app.smtp(), "a@client.example", recipient, &message).await
}

/// Text that compression does not shrink.
fn noise(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 66);
    while text.len() < bytes {
        text.push_str(&uuid::Uuid::new_v4().simple().to_string());
        text.push_str("\r\n");
    }
    text.truncate(bytes);
    text.replace(['\r', '\n'], " ")
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_usage_exactly_under_concurrency() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let sends = (0..24).map(|i| {
        let app = &app;
        async move { send(app, &format!("name+{i}@inbox.localhost"), 100 * i).await }
    });
    for reply in join_all(sends).await {
        assert_eq!(reply.code, 250);
    }
    let messages = app.messages(&mailbox).await;
    let sizes: Vec<u64> = messages.iter().map(|message| message["size"].as_u64().unwrap()).collect();
    let used = || async { app.get_mailbox(&mailbox, "/api/me").await.expect(200)["used"].as_u64().unwrap() };
    assert_eq!(used().await, sizes.iter().sum::<u64>());

    let deletions = messages[..8].iter().map(|message| {
        let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
        app.request(reqwest::Method::DELETE, &path).bearer(&mailbox.jwt).send()
    });
    for answer in join_all(deletions).await {
        assert_eq!(answer.status, 204);
    }
    assert_eq!(used().await, sizes[8..].iter().sum::<u64>());
    app.clock.advance(jiff::SignedDuration::from_mins(61));
    assert_eq!(used().await, 0);
    app.worker_pass().await;
    assert_eq!(used().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_declared_size_that_exceeds_the_quota_at_rcpt() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    app.mailbox(None, "small@inbox.localhost").await;
    assert_eq!(send(&app, "small@inbox.localhost", 4_000).await.code, 250);
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example> SIZE=7000").await;
    // RCPT may use a cached acceptance of 5 s ago, when there was no mailbox.
    eventually("the mailbox is known at RCPT", || async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example> SIZE=7000").await;
        (client.command("RCPT TO:<small@inbox.localhost>").await.status() == FULL).then_some(())
    })
    .await;
    assert_eq!(client.command("RCPT TO:<small@inbox.localhost>").await.status(), FULL);
    assert_eq!(client.command("RCPT TO:<small+tag@inbox.localhost>").await.status(), FULL);
    client.expect_positive("RCPT TO:<other@inbox.localhost>").await;
    client.expect_positive("RSET").await;
    client.expect_positive("MAIL FROM:<a@client.example> SIZE=3000").await;
    client.expect_positive("RCPT TO:<small@inbox.localhost>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_declared_size_where_mail_has_expired() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    app.mailbox(None, "small@inbox.localhost").await;
    // The start of a partition: it outlives its mail.
    let width = 300 - app.clock.now().as_second() % 300;
    app.clock.advance(jiff::SignedDuration::from_secs(width));
    app.worker_pass().await;
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.code, 250);
    // A mailbox that is new may pass for a shared inbox for a moment; the end of the data decides.
    let mut client = eventually("the mailbox is full", || async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example> SIZE=8000").await;
        (client.command("RCPT TO:<small@inbox.localhost>").await.status() == FULL).then_some(client)
    })
    .await;
    app.clock.advance(jiff::SignedDuration::from_mins(61));
    client.expect_positive("RCPT TO:<small@inbox.localhost>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_a_mail_for_no_recipient_if_one_is_over_quota() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    let small = app.mailbox(None, "small@inbox.localhost").await;
    let roomy = app.mailbox(None, "roomy@inbox.localhost").await;
    assert_eq!(send(&app, "small@inbox.localhost", 6_000).await.code, 250);
    let message = smtp::message("a@client.example", "too much", &noise(6_000));
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let recipients = ["roomy@inbox.localhost", "small@inbox.localhost", "shared@inbox.localhost"];
    let reply = client.transact("a@client.example", &recipients, &message).await;
    assert_eq!(reply.status(), FULL);
    assert!(app.messages(&roomy).await.is_empty());
    assert_eq!(app.messages(&small).await.len(), 1);
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    let reply = client.transact("a@client.example", &["roomy@inbox.localhost"], &message).await;
    assert_eq!(reply.code, 250, "the session continues");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_mail_never_exceeds_the_quota() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    let mailbox = app.mailbox(None, "small@inbox.localhost").await;
    let replies = join_all((0..16).map(|_| send(&app, "small@inbox.localhost", 2_500))).await;
    let stored = replies.iter().filter(|reply| reply.code == 250).count();
    assert!((1..=3).contains(&stored), "{stored} mails of more than 2,500 bytes in 10,000");
    for reply in replies.iter().filter(|reply| reply.code != 250) {
        assert_eq!(reply.status(), FULL);
    }
    let used = app.get_mailbox(&mailbox, "/api/me").await.expect(200)["used"].as_u64().unwrap();
    assert!(used <= 10_000, "{used}");
    assert_eq!(app.messages(&mailbox).await.len(), stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_and_deleted_mail_frees_the_quota() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    let mailbox = app.mailbox(None, "small@inbox.localhost").await;
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.code, 250);
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.status(), FULL);
    let path = format!("/api/messages/{}", app.messages(&mailbox).await[0]["id"].as_str().unwrap());
    let deleted = app.request(reqwest::Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.code, 250);
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.status(), FULL);
    app.clock.advance(jiff::SignedDuration::from_mins(61));
    assert_eq!(send(&app, "small@inbox.localhost", 8_000).await.code, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_each_address_without_a_mailbox() {
    let app = App::builder().config(|config| config.limits.inbox_bytes = 10_000).start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    for address in ["shared@inbox.localhost", "any@ships.example"] {
        assert_eq!(send(&app, address, 6_000).await.code, 250);
        assert_eq!(send(&app, address, 6_000).await.status(), FULL, "{address}");
        assert_eq!(send(&app, address, 500).await.code, 250, "{address}: a small mail fits");
    }
    assert_eq!(send(&app, "other@inbox.localhost", 6_000).await.code, 250);
    let replies = join_all((0..12).map(|_| send(&app, "race@inbox.localhost", 2_500))).await;
    assert!(replies.iter().filter(|reply| reply.code == 250).count() <= 3);
}

/// The bound of an address without a mailbox is none of a mailbox, also for mails in quick succession.
#[tokio::test(flavor = "multi_thread")]
async fn fills_a_mailbox_beyond_the_bound_of_a_shared_inbox() {
    let app = App::builder().config(|config| config.limits.inbox_bytes = 10_000).start().await;
    rows::set_mailbox_quota(&app.pool, app.tenant.id, 2, 100_000).await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "roomy@inbox.localhost").await;
    for _ in 0..5 {
        assert_eq!(send(&app, "roomy@inbox.localhost", 6_000).await.code, 250);
    }
    let replies = join_all((0..5).map(|_| send(&app, "roomy@inbox.localhost", 6_000))).await;
    assert!(replies.iter().all(|reply| reply.code == 250), "{replies:?}");
    assert_eq!(app.messages(&mailbox).await.len(), 10);
}

/// A mail that is refused for another recipient takes nothing of a shared inbox.
#[tokio::test(flavor = "multi_thread")]
async fn counts_nothing_of_a_refused_mail_in_a_shared_inbox() {
    let app = App::builder()
        .config(|config| (config.limits.inbox_bytes, config.limits.mailbox_bytes) = (20_000, 100))
        .start()
        .await;
    app.mailbox(None, "full@inbox.localhost").await;
    let message = smtp::message("a@client.example", "filling", &noise(5_500));
    for _ in 0..5 {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        let recipients = ["shared@inbox.localhost", "full@inbox.localhost"];
        assert_eq!(client.transact("a@client.example", &recipients, &message).await.status(), FULL);
    }
    for _ in 0..3 {
        assert_eq!(send(&app, "shared@inbox.localhost", 5_500).await.code, 250);
    }
    assert_eq!(send(&app, "shared@inbox.localhost", 5_500).await.status(), FULL);
}

/// A tenant counts what the disk holds, so more fits into it than into its mailboxes.
#[tokio::test(flavor = "multi_thread")]
async fn limits_a_tenant_to_its_mailboxes_times_their_quota() {
    let app = App::start().await;
    rows::set_mailbox_quota(&app.pool, app.tenant.id, 2, 10_000).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mut stored = 0;
    while send(&app, &format!("a{stored}@ships.example"), 8_000).await.code == 250 {
        stored += 1;
    }
    assert!((2..=4).contains(&stored), "{stored} mails of 8,000 bytes, compressed, in 20,000");
    assert_eq!(send(&app, "another@ships.example", 8_000).await.status(), FULL);
    assert_eq!(send(&app, "shared@inbox.localhost", 8_000).await.code, 250);
}

/// Limits that an earlier version let administrators set: their product is more than a bigint holds.
#[tokio::test(flavor = "multi_thread")]
async fn accepts_mail_of_a_tenant_with_absurd_limits() {
    let app = App::start().await;
    rows::set_mailbox_quota(&app.pool, app.tenant.id, i32::MAX, i64::MAX).await;
    app.mailbox(Some(&app.tenant.pro), "huge@inbox.localhost").await;
    assert_eq!(send(&app, "huge@inbox.localhost", 100).await.code, 250);
}

/// A mail to many addresses of a mailbox costs it the mail once, and rows.
#[tokio::test(flavor = "multi_thread")]
async fn counts_a_mail_of_many_recipients_once() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 40_000).start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let recipients: Vec<String> = (0..20).map(|tag| format!("name+{tag}@inbox.localhost")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let message = smtp::message("a@client.example", "to many", &noise(8_000));
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    assert_eq!(client.transact("a@client.example", &recipients, &message).await.code, 250);
    let size = app.messages(&mailbox).await[0]["size"].as_u64().unwrap();
    let used = app.get_mailbox(&mailbox, "/api/me").await.expect(200)["used"].as_u64().unwrap();
    assert_eq!(used, size + 19 * 1_024);
    assert_eq!(send(&app, "name@inbox.localhost", 8_000).await.code, 250);
    assert_eq!(send(&app, "name@inbox.localhost", 8_000).await.status(), FULL);
}

/// The installation counts what the disk holds: mail of many recipients, of which compression leaves little, fills
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn counts_what_the_disk_holds_of_mail_to_shared_inboxes() {
    let app = App::start().await;
    let recipients: Vec<String> = (0..100).map(|name| format!("s{name}@inbox.localhost")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let message = smtp::message("a@client.example", "to many", &"x".repeat(50_000));
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    assert_eq!(client.transact("a@client.example", &recipients, &message).await.code, 250);
    let counted = app.count("SELECT sum(shared_bytes)::bigint FROM message_partition").await;
    assert!(counted < 100 * 1_024 + 5_000, "{counted}");
}

/// Mail without a tenant fills its part of the storage, and nothing of what tenants pay for.
#[tokio::test(flavor = "multi_thread")]
async fn limits_mail_without_a_tenant_to_its_part() {
    let app = App::builder()
        .config(|config| {
            config.limits.store_bytes = 2_000_000;
            config.limits.shared_bytes = 50_000;
        })
        .start()
        .await;
    app.mailbox(None, "free@inbox.localhost").await;
    app.mailbox(Some(&app.tenant.pro), "paid@inbox.localhost").await;
    assert_eq!(fill(&app, "s").await.status(), "452 4.3.1");
    eventually("free mailboxes are full as well", || async {
        let reply = send(&app, "free@inbox.localhost", 8_000).await;
        (reply.status() == "452 4.3.1").then_some(())
    })
    .await;
    assert_eq!(send(&app, "paid@inbox.localhost", 8_000).await.code, 250);
}

/// The parts are of `limits.store_bytes`: at most half of it is for mail without a tenant.
#[tokio::test(flavor = "multi_thread")]
async fn limits_the_installation() {
    let app = App::builder()
        .config(|config| {
            config.limits.store_bytes = 100_000;
            config.limits.shared_bytes = 100_000;
        })
        .start()
        .await;
    app.mailbox(Some(&app.tenant.pro), "paid@inbox.localhost").await;
    assert_eq!(fill(&app, "s").await.status(), "452 4.3.1");
    eventually("tenants' part is full as well", || async {
        let reply = send(&app, "paid@inbox.localhost", 8_000).await;
        (reply.status() == "452 4.3.1").then_some(())
    })
    .await;
}

/// Sends to one shared inbox after another until the first rejection; the limit is enforced with a delay.
async fn fill(app: &App, prefix: &str) -> tempmail_tests::Reply {
    let next = std::sync::atomic::AtomicUsize::new(0);
    eventually("the limit is reached", || async {
        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let reply = send(app, &format!("{prefix}{i}@inbox.localhost"), 8_000).await;
        (reply.code != 250).then_some(reply)
    })
    .await
}
