//! Postgres is unavailable or rejects a statement: mail is deferred and never lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient, send_mail, smtp};

async fn start_behind_proxy() -> (App, PostgresProxy) {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    (app, proxy)
}

async fn send(app: &App, subject: &str) -> tempmail_tests::Reply {
    let message = smtp::message("a@client.example", subject, "");
    send_mail(app.smtp(), "a@client.example", "outage@inbox.localhost", &message).await
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_mail_with_451_during_an_outage() {
    let (app, proxy) = start_behind_proxy().await;
    assert_eq!(send(&app, "before").await.code, 250);
    proxy.cut();
    for _ in 0..3 {
        assert_eq!(send(&app, "during").await.status(), "451 4.3.0");
    }
    proxy.restore();
    eventually("mail is accepted again", || async { (send(&app, "after").await.code == 250).then_some(()) })
        .await;
    let subjects: Vec<String> = app
        .emails_once_readable("outage@inbox.localhost")
        .await
        .iter()
        .map(|email| email["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(subjects, ["after", "before"], "deferred mail is not stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_mail_if_the_outage_begins_within_its_data() {
    let (app, proxy) = start_behind_proxy().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<outage@inbox.localhost>").await;
    client.expect_positive("DATA").await;
    proxy.cut();
    client.send(smtp::dot_stuffed(&smtp::message("a@client.example", "lost?", ""))).await;
    assert_eq!(client.reply().await.status(), "451 4.3.0");
    proxy.restore();
    eventually("mail is accepted again", || async { (send(&app, "after").await.code == 250).then_some(()) })
        .await;
    // The session survives the outage.
    let message = smtp::message("a@client.example", "again", "");
    let reply = client.transact("a@client.example", &["outage@inbox.localhost"], &message).await;
    assert_eq!(reply.code, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_accepted_mail_if_outages_interrupt_a_load() {
    let (app, proxy) = start_behind_proxy().await;
    let over = AtomicBool::new(false);
    let senders = join_all((0..8).map(|sender| {
        let (app, over) = (&app, &over);
        async move {
            // The accepted subjects by address, which has at most a page of mail.
            let mut accepted: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
            let mut i = 0;
            while !over.load(Ordering::Acquire) {
                let (address, subject) = (format!("load{sender}.{}@inbox.localhost", i / 40), format!("{i}"));
                i += 1;
                let message = smtp::message("a@client.example", &subject, "");
                match client.try_transact("a@client.example", &[&address], &message).await {
                    Some(reply) if reply.code == 250 => accepted.entry(address).or_default().push(subject),
                    Some(reply) => {
                        assert_eq!(reply.status(), "451 4.3.0");
                        client.expect_positive("RSET").await;
                    }
                    None => client = SmtpClient::connect_with_ehlo(app.smtp()).await,
                }
            }
            accepted
        }
    }));
    let outages = async {
        for _ in 0..2 {
            let stored = app.count("SELECT seq FROM stream").await;
            eventually("mail is stored", || async {
                (app.count("SELECT seq FROM stream").await > stored + 20).then_some(())
            })
            .await;
            proxy.cut();
            assert_eq!(send(&app, "probe").await.status(), "451 4.3.0");
            proxy.restore();
            eventually("mail is accepted again", || async {
                (send(&app, "probe").await.code == 250).then_some(())
            })
            .await;
        }
        over.store(true, Ordering::Release);
    };
    let (senders, ()) = tokio::join!(senders, outages);
    for (address, accepted) in senders.into_iter().flatten() {
        let mut stored: Vec<String> = app
            .emails_once_readable(&address)
            .await
            .iter()
            .map(|email| email["subject"].as_str().unwrap().to_owned())
            .collect();
        stored.sort();
        let distinct = stored.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(distinct, "a mail is stored twice: {stored:?}");
        assert!(accepted.iter().all(|subject| stored.contains(subject)), "{accepted:?} of {stored:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_survives_an_outage_or_returns_503() {
    let (app, proxy) = start_behind_proxy().await;
    let long_poll = app.start_long_poll(&app.tenant.live, "/v1/inbox/outage@inbox.localhost").await;
    proxy.cut();
    assert_eq!(send(&app, "during").await.status(), "451 4.3.0");
    proxy.restore();
    eventually("mail is accepted again", || async { (send(&app, "after").await.code == 250).then_some(()) })
        .await;
    let mut answer = long_poll.await.unwrap();
    if answer.status == 204 {
        // It ended after its 25 s, before the mail came: clients continue from its cursor.
        let since = answer.header("x-next-since");
        answer = app.get(&format!("/v1/inbox/outage@inbox.localhost?since={since}")).await;
    }
    match answer.status {
        200 => assert_eq!(answer.json()["emails"][0]["subject"], "after"),
        status => assert_eq!((status, answer.error(503).as_str()), (503, "unavailable")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_only_the_mail_of_a_batch_that_postgres_rejects() {
    let app = App::start().await;
    app.deliver("first@inbox.localhost", "creates the partition", "").await;
    sqlx::query("ALTER TABLE message ADD CONSTRAINT poison CHECK (subject <> 'poison')")
        .execute(&app.pool)
        .await
        .unwrap();
    for _ in 0..3 {
        // Mail that is sent while the stream is locked goes into one batch.
        let mut lock = app.pool.begin().await.unwrap();
        sqlx::query("SELECT seq FROM stream FOR UPDATE").execute(&mut *lock).await.unwrap();
        let sends = join_all((0..20).map(|i| {
            let app = &app;
            async move { send(app, if i % 7 == 3 { "poison" } else { "good" }).await.status() }
        }));
        let release = async {
            eventually("a batch waits for the stream", || async {
                let waiting = app
                    .count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple')")
                    .await;
                (waiting > 0).then_some(())
            })
            .await;
            lock.rollback().await.unwrap();
        };
        let (statuses, ()) = tokio::join!(sends, release);
        for (i, status) in statuses.iter().enumerate() {
            assert_eq!(status, if i % 7 == 3 { "554 5.6.0" } else { "250 2.0.0" }, "{i}");
        }
    }
    let good = app.count("SELECT count(*) FROM message WHERE subject = 'good'").await;
    assert_eq!(good, 51);
    assert_eq!(app.count("SELECT count(*) FROM message WHERE subject = 'poison'").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 52, "no raw data without a message");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnects_after_postgres_closes_connections() {
    let app = App::start().await;
    assert_eq!(send(&app, "before").await.code, 250);
    for i in 0..2 {
        app.count(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
        eventually("mail is accepted again", || async {
            let reply = send(&app, &format!("{i}")).await;
            assert!(reply.code == 250 || reply.status() == "451 4.3.0", "{reply:?}");
            (reply.code == 250).then_some(())
        })
        .await;
    }
}
