//! All sums that bounds are checked by are those of the rows, after any order of arrivals, deletions, expiry and the
//! worker's passes: of partitions, of tenants and of inboxes, for mail of one recipient and of many, whose owners share
//! its data.

use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use tempmail_store::{MigrationFile, SCHEMA};
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::rows::set_retention;
use tempmail_tests::{App, SmtpClient, smtp};

/// Tags of a mailbox, of a free one, a shared inbox, and addresses of a custom domain.
const RECIPIENTS: [&str; 10] = [
    "name@inbox.localhost",
    "name+a@inbox.localhost",
    "name+b@inbox.localhost",
    "second@inbox.localhost",
    "free@inbox.localhost",
    "free+a@inbox.localhost",
    "shared@inbox.localhost",
    "other@inbox.localhost",
    "any@ships.example",
    "more@ships.example",
];

/// Partitions whose sums are others than those of their rows.
const WRONG_PARTITIONS: &str = "
    SELECT count(*) FROM message_partition p
      LEFT JOIN (SELECT g.class, g.starts, sum(g.data + g.messages * 1024) AS bytes,
                        sum(CASE WHEN g.free > 0 THEN g.data + g.free * 1024 END) AS free,
                        sum(CASE WHEN g.shared > 0 THEN g.data + g.shared * 1024 END) AS shared
                   FROM (SELECT m.class, partition_start(m.class, id_time(m.id)) AS starts, r.stored_bytes AS data,
                                count(*) AS messages, count(*) FILTER (WHERE m.tenant IS NULL) AS free,
                                count(*) FILTER (WHERE m.owner_kind = 0) AS shared
                           FROM message m JOIN raw r ON r.class = m.class AND r.mail = m.mail AND r.part = 0
                          GROUP BY 1, 2, m.mail, 3) g
                  GROUP BY 1, 2) s ON s.class = p.class AND s.starts = p.starts
     WHERE p.bytes <> coalesce(s.bytes, 0) OR p.free_bytes <> coalesce(s.free, 0)
        OR p.shared_bytes <> coalesce(s.shared, 0)";

/// The same of tenants.
const WRONG_TENANTS: &str = "
    SELECT count(*) FROM usage u JOIN tenant t ON t.id = u.scope
      LEFT JOIN (SELECT g.tenant, g.class, g.starts, sum(g.data + g.messages * 1024) AS bytes
                   FROM (SELECT m.tenant, m.class, partition_start(m.class, id_time(m.id)) AS starts,
                                r.stored_bytes AS data, count(*) AS messages
                           FROM message m JOIN raw r ON r.class = m.class AND r.mail = m.mail AND r.part = 0
                          GROUP BY 1, 2, 3, m.mail, 4) g
                  GROUP BY 1, 2, 3) s ON s.tenant = u.scope AND s.class = u.class AND s.starts = u.starts
     WHERE u.bytes <> coalesce(s.bytes, 0)";

/// The same of mailboxes and of addresses of custom domains, which count what they show.
const WRONG_INBOXES: &str = "
    SELECT count(*) FROM usage u
      LEFT JOIN LATERAL (
               SELECT sum(g.size + (g.messages - 1) * least(g.size, 1024)) AS bytes
                 FROM (SELECT max(m.size) AS size, count(*) AS messages FROM visible_message m
                        WHERE m.inbox = u.scope AND m.class = u.class AND m.id >= u.expired_before
                          AND partition_start(m.class, id_time(m.id)) = u.starts
                        GROUP BY m.mail) g) s ON true
     WHERE NOT EXISTS (SELECT FROM tenant t WHERE t.id = u.scope) AND u.bytes <> coalesce(s.bytes, 0)";

struct Fixture {
    app: App,
    mailbox: Mailbox,
    random: StdRng,
}

impl Fixture {
    async fn start(seed: u32) -> Self {
        let app = App::start().await;
        // The class of mail without a tenant, so that the data of a mail is one row for all of its recipients.
        set_retention(&app.pool, app.tenant.id, 1).await;
        app.custom_domain(&app.tenant, "ships.example").await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
        app.mailbox(Some(&app.tenant.pro), "second@inbox.localhost").await;
        app.mailbox(None, "free@inbox.localhost").await;
        Self { app, mailbox, random: StdRng::seed_from_u64(seed.into()) }
    }

    async fn send(&mut self) {
        let count = [1, 1, 2, 3, 6][self.random.random_range(0..5)];
        let recipients: Vec<&str> = RECIPIENTS.sample(&mut self.random, count).copied().collect();
        let body = "x".repeat(self.random.random_range(0..3_000));
        let mut client = SmtpClient::connect_with_ehlo(self.app.smtp()).await;
        let message = smtp::message("a@client.example", "sums", &body);
        assert_eq!(client.transact("a@client.example", &recipients, &message).await.code, 250);
    }

    async fn delete_one(&mut self) {
        let shown = self.app.messages(&self.mailbox).await;
        if let Some(message) = shown.choose(&mut self.random) {
            let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
            let deleted = self.app.request(Method::DELETE, &path).bearer(&self.mailbox.jwt).send().await;
            assert!(deleted.status < 500, "{}", deleted.text());
        }
    }

    async fn clear(&mut self) {
        let address = RECIPIENTS.choose(&mut self.random).unwrap();
        let cleared = self.app.delete(&format!("/v1/inbox/{address}")).await;
        // A free mailbox is not the tenant's.
        assert!([204, 404].contains(&cleared.status), "{}", cleared.text());
    }

    async fn step(&mut self) {
        match self.random.random_range(0..12) {
            0 => self.clear().await,
            1 | 2 => self.delete_one().await,
            3 | 4 => self.app.worker_pass().await,
            5 => {
                let seconds = self.random.random_range(1..900);
                self.app.clock.advance(SignedDuration::from_secs(seconds));
            }
            _ => self.send().await,
        }
    }

    async fn assert_exact(&self, context: &str) {
        for (sums, wrong) in
            [("partitions", WRONG_PARTITIONS), ("tenants", WRONG_TENANTS), ("inboxes", WRONG_INBOXES)]
        {
            assert_eq!(self.app.count(wrong).await, 0, "sums of {sums}, {context}");
        }
    }
}

/// The seed of a failure is in its message.
#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_sums_of_the_rows_after_any_history() {
    let seed = rand::rng().random::<u32>();
    let mut fixture = Fixture::start(seed).await;
    for step in 0..150 {
        fixture.step().await;
        fixture.assert_exact(&format!("seed {seed}, step {step}")).await;
    }
    for address in RECIPIENTS {
        fixture.app.delete(&format!("/v1/inbox/{address}")).await;
    }
    fixture.app.worker_pass().await;
    fixture.assert_exact(&format!("seed {seed}, at the end")).await;
}

/// The migrations that follow the baseline make the sums from those that programs of the version before kept.
#[tokio::test(flavor = "multi_thread")]
async fn makes_the_sums_of_a_database_of_the_version_before() {
    let seed = rand::rng().random::<u32>();
    let mut fixture = Fixture::start(seed).await;
    for _ in 0..60 {
        fixture.send().await;
    }
    fixture.clear().await;
    fixture.delete_one().await;
    let mut transaction = fixture.app.pool.begin().await.unwrap();
    // The worker of this version, which deletes what was cleared, would change the sums as it counts.
    sqlx::query("LOCK TABLE message IN SHARE MODE").execute(&mut *transaction).await.unwrap();
    // What those programs kept: the size of each message.
    for statement in [
        "UPDATE message_partition p
            SET bytes = s.bytes, shared_bytes = s.shared, free_bytes = 0
           FROM (SELECT m.class, partition_start(m.class, id_time(m.id)) AS starts, sum(m.size) AS bytes,
                        coalesce(sum(m.size) FILTER (WHERE m.owner_kind = 0), 0) AS shared
                   FROM message m GROUP BY 1, 2) s
          WHERE p.class = s.class AND p.starts = s.starts",
        "UPDATE usage u
            SET bytes = coalesce((SELECT sum(m.size) FROM visible_message m
                                   WHERE m.inbox = u.scope AND m.class = u.class
                                     AND partition_start(m.class, id_time(m.id)) = u.starts), 0)",
        "UPDATE usage u
            SET bytes = coalesce((SELECT sum(m.size) FROM message m
                                   WHERE m.tenant = u.scope AND m.class = u.class
                                     AND partition_start(m.class, id_time(m.id)) = u.starts), 0)
           FROM tenant t WHERE t.id = u.scope",
    ] {
        sqlx::query(statement).execute(&mut *transaction).await.unwrap();
    }
    let sums = |migration: &&MigrationFile| ["stored_bytes", "usage"].contains(&migration.name);
    for migration in SCHEMA.migrations.iter().filter(sums) {
        sqlx::raw_sql(migration.text).execute(&mut *transaction).await.unwrap();
    }
    transaction.commit().await.unwrap();
    fixture.assert_exact(&format!("seed {seed}")).await;
}
