//! One mail to a mailbox, an address of a custom domain and a shared inbox.

use jiff::SignedDuration;
use tempmail_tests::app::Mailbox;
use tempmail_tests::rows::set_retention;
use tempmail_tests::{App, SmtpClient};

const BOX: &str = "quarterdeck@inbox.localhost";
const DOMAIN: &str = "forecastle@ships.example";
const SHARED: &str = "gangway@inbox.localhost";
const MAIL: &[u8] =
    b"From: a@client.example\r\nTo: undisclosed-recipients:;\r\nSubject: to all three\r\n\r\nthe same body\r\n";

/// A free mailbox (1 h), a custom domain of a tenant with 6 h, and a shared inbox (1 h).
async fn sent() -> (App, Mailbox) {
    let app = App::start().await;
    set_retention(&app.pool, app.tenant.id, 6).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(None, BOX).await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.transact("a@client.example", &[BOX, DOMAIN, SHARED], MAIL).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    (app, mailbox)
}

async fn rows(app: &App) -> (i64, i64) {
    (app.count("SELECT count(*) FROM message").await, app.count("SELECT count(*) FROM raw").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn names_no_other_recipient_in_a_copy() {
    let (app, mailbox) = sent().await;
    let id = |email: &serde_json::Value| email["id"].as_str().unwrap().to_owned();
    let in_box = id(&app.messages(&mailbox).await[0]);
    let in_domain = id(&app.emails(DOMAIN).await[0]);
    let in_shared = id(&app.emails(SHARED).await[0]);
    assert!(in_box != in_domain && in_domain != in_shared && in_box != in_shared);

    let path = format!("/api/messages/{in_box}");
    let mut copies = vec![
        app.get_mailbox(&mailbox, &path).await.text(),
        app.get_mailbox(&mailbox, &format!("{path}/raw")).await.text(),
    ];
    for id in [&in_domain, &in_shared] {
        copies.push(app.get(&format!("/v1/email/{id}")).await.text());
        copies.push(app.get(&format!("/v1/email/{id}/raw")).await.text());
    }
    for (i, copy) in copies.iter().enumerate() {
        assert!(copy.contains("the same body"));
        let own = ["quarterdeck", "forecastle", "gangway"][i / 2];
        for name in ["quarterdeck", "forecastle", "gangway"] {
            let has_name = copy.contains(name);
            // The JSON names its own address; the raw message of several recipients nobody.
            assert_eq!(has_name, name == own && i % 2 == 0, "{name} in copy {i}: {copy}");
        }
        // No id that two copies have in common: none shows that they are of one mail.
        for (j, other) in copies.iter().enumerate().filter(|(j, _)| j / 2 != i / 2 && j % 2 == 1) {
            if i % 2 == 1 {
                assert_eq!(trace(copy).len(), trace(other).len(), "{i} {j}");
            }
        }
    }
    // The copy of one tenant is nothing to another.
    let other = app.another_tenant("lighthouse").await;
    app.get_as(&other.live, &format!("/v1/email/{in_domain}")).await.assert_v1_error(404, "not_found");
    app.get_as(&other.live, &format!("/v1/email/{in_box}")).await.assert_v1_error(404, "not_found");
}

fn trace(raw: &str) -> &str {
    raw.split_once("From: a@client.example").map_or("", |(trace, _)| trace)
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_each_copy_when_its_own_retention_ends() {
    let (app, mailbox) = sent().await;
    assert_eq!(rows(&app).await, (3, 2), "raw data once a mail and class");

    app.clock.advance(SignedDuration::from_mins(61));
    assert!(app.messages(&mailbox).await.is_empty());
    assert_eq!(app.emails(DOMAIN).await.len(), 1);
    // One partition's width (5 min) and 5 min more, and nothing of it is on disk.
    app.clock.advance(SignedDuration::from_mins(10));
    app.worker_pass().await;
    assert_eq!(rows(&app).await, (1, 1));
    assert_eq!(tables_with_mail(&app).await, 2, "one partition of each table has rows");
    assert_eq!(app.emails(DOMAIN).await[0]["subject"], "to all three");

    app.advance_hours(6);
    app.worker_pass().await;
    assert_eq!(rows(&app).await, (0, 0));
    assert_eq!(tables_with_mail(&app).await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM message_partition").await, 0);
}

/// Tables of messages and raw data, attached or not, that have anything in them.
async fn tables_with_mail(app: &App) -> usize {
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT c.oid::regclass::text FROM pg_class c
         WHERE c.relkind = 'r' AND c.relname ~ '^(message|raw)_[0-9]'",
    )
    .fetch_all(&app.pool)
    .await
    .unwrap();
    let mut filled = 0;
    for table in tables {
        let statement = sqlx::AssertSqlSafe(format!("SELECT EXISTS (SELECT FROM {table})"));
        let has_rows: bool = sqlx::query_scalar(statement).fetch_one(&app.pool).await.unwrap();
        filled += usize::from(has_rows);
    }
    filled
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_other_copies_when_one_is_deleted() {
    let (app, mailbox) = sent().await;
    let shared = app.emails(SHARED).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/email/{shared}")).await.status, 204);
    assert_eq!(rows(&app).await, (2, 2), "the mailbox still needs the raw data of the class");
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/messages/{id}");
    assert!(app.get_mailbox(&mailbox, &format!("{path}/raw")).await.text().contains("the same body"));

    let deleted = app.request(reqwest::Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
    assert_eq!(rows(&app).await, (1, 1), "the last of its class takes the raw data along");
    let domain = app.emails(DOMAIN).await[0]["id"].as_str().unwrap().to_owned();
    assert!(app.get(&format!("/v1/email/{domain}/raw")).await.text().contains("the same body"));
    assert_eq!(app.delete(&format!("/v1/email/{domain}")).await.status, 204);
    assert_eq!(rows(&app).await, (0, 0));
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM message_partition").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_a_changed_retention_to_new_mail_only() {
    let (app, _mailbox) = sent().await;
    set_retention(&app.pool, app.tenant.id, 72).await;
    app.deliver(DOMAIN, "longer", "").await;
    app.advance_hours(7);
    app.worker_pass().await;
    let emails = app.emails(DOMAIN).await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"longer".into()));
}
