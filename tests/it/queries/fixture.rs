//! A running tempmail over a million mails.

use jiff_sqlx::ToSqlx as _;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;
use tempmail_tests::app::{Mailbox, SYSTEM_DOMAIN};
use tempmail_tests::postgres::Database;
use uuid::Uuid;

/// Messages that are inserted, beside the few that are delivered.
const MESSAGES: i64 = 1_000_000;
/// Tenants, custom domains and tokens of others.
const TENANTS: i32 = 2_000;
/// Mailboxes of others.
const MAILBOXES: i32 = 20_000;
/// Mailboxes and custom domains with mail.
const OWNERS: i32 = 3_000;
/// Addresses without a mailbox with mail.
const INBOXES: i32 = 50_000;
/// Connections of each role: few, so that each runs every statement often.
const POOL: u32 = 3;

/// The installation that requests are made to.
#[derive(Debug)]
pub struct QueryFixture {
    /// All roles, over the filled database; the tenant's retention is 72 h.
    pub app: App,
    /// A mailbox of the tenant, with hundreds of mails.
    pub mailbox: Mailbox,
    /// Mailboxes of the tenant without mail.
    pub others: Vec<Mailbox>,
    /// A custom domain of the tenant, whose addresses have mail.
    pub domain: &'static str,
    /// A cursor from before the million.
    pub since: String,
    /// A webhook of the tenant, with an event for each mail of the mailbox; [`HOLDER`] holds its lease.
    pub webhook: Uuid,
}

/// The holder of the lease of the tenant's webhook, which is none of the roles.
pub const HOLDER: Uuid = Uuid::from_u128(1);
/// Webhooks of others with pending events; as many again have none.
pub const LANES: u32 = 500;

impl QueryFixture {
    /// Starts it; from then on the log of Postgres has all statements.
    pub async fn start() -> Self {
        let database = Database::create().await;
        database.log_plans().await;
        let app =
            App::builder().database(database).config(|config| config.postgres.pool = POOL).start().await;
        let pro = app.tenant.pro.clone();
        let mailbox = app.mailbox(Some(&pro), &format!("box@{SYSTEM_DOMAIN}")).await;
        let mut others = Vec::new();
        for number in 0..super::REPEATED {
            others.push(app.mailbox(Some(&pro), &format!("other{number}@{SYSTEM_DOMAIN}")).await);
        }
        let domain = "custom.example";
        let domain_id = app.custom_domain(&app.tenant, domain).await;
        // The message that is copied.
        let first = format!("first@{SYSTEM_DOMAIN}");
        app.deliver(&first, "first", "the text of all").await;
        let since = app.get(&format!("/v1/inbox/{first}")).await.expect(200)["next_since"]
            .as_str()
            .unwrap()
            .to_owned();
        fill(&app, mailbox.id, domain_id).await;
        let webhook = fill_webhooks(&app, mailbox.id).await;
        // As autovacuum does later: before it the BRIN does not cover the rows.
        execute(&app.pool, sqlx::query("VACUUM (ANALYZE)")).await;
        Self { app, mailbox, others, domain, since, webhook }
    }

    /// Ids of messages at addresses without a mailbox, of the mailbox, and of the custom domain.
    pub async fn ids(&self) -> [Vec<Uuid>; 3] {
        [
            self.ids_of(
                "SELECT id FROM message WHERE class = 1 AND owner = $1 ORDER BY id DESC LIMIT $2",
                Uuid::nil(),
            )
            .await,
            self.ids_of("SELECT id FROM message WHERE inbox = $1 LIMIT $2", self.mailbox.id).await,
            self.ids_of(
                "SELECT id FROM message WHERE owner = $1 AND owner_kind = 2 LIMIT $2",
                self.domain_id().await,
            )
            .await,
        ]
    }

    async fn ids_of(&self, statement: &'static str, owner: Uuid) -> Vec<Uuid> {
        let ids: Vec<Uuid> = sqlx::query_scalar(statement)
            .bind(owner)
            .bind(i64::from(super::REPEATED))
            .fetch_all(&self.app.pool)
            .await
            .unwrap();
        assert_eq!(ids.len(), usize::from(super::REPEATED), "the owner has enough mail");
        ids
    }

    /// The id of the custom domain.
    pub async fn domain_id(&self) -> Uuid {
        sqlx::query_scalar("SELECT id FROM domain WHERE name = $1")
            .bind(self.domain)
            .fetch_one(&self.app.pool)
            .await
            .unwrap()
    }
}

/// Others' tenants, domains, mailboxes and tokens; and a million messages: three in ten over the
/// last 72 hours, for mailboxes and custom domains of tenants, the rest in the last hour, seven
/// in ten of them for addresses without a mailbox.
async fn fill(app: &App, mailbox: Uuid, domain: Uuid) {
    let now = app.clock.now().to_sqlx();
    let fill = |statement| sqlx::query(statement).bind(now);
    execute(&app.pool, fill(TENANT).bind(TENANTS)).await;
    execute(&app.pool, fill(DOMAIN).bind(OWNERS)).await;
    execute(&app.pool, fill(TOKEN).bind(TENANTS)).await;
    execute(&app.pool, fill(MINTED_TOKEN).bind(TENANTS)).await;
    execute(&app.pool, fill(MAILBOX).bind(MAILBOXES).bind(TENANTS)).await;
    execute(&app.pool, fill(PARTITIONS)).await;
    let messages = fill(MESSAGE).bind(MESSAGES).bind(OWNERS).bind(INBOXES).bind(mailbox).bind(domain);
    execute(&app.pool, messages).await;
    execute(&app.pool, fill(USAGE).bind(mailbox)).await;
    execute(&app.pool, sqlx::query("UPDATE stream SET seq = (SELECT max(seq) FROM message)")).await;
}

/// Others' webhooks, due in an hour, and that of the tenant.
async fn fill_webhooks(app: &App, mailbox: Uuid) -> Uuid {
    let now = app.clock.now().to_sqlx();
    let lanes = i32::try_from(LANES).unwrap();
    execute(&app.pool, sqlx::query(WEBHOOK).bind(now).bind(2 * lanes)).await;
    let webhook = sqlx::query_scalar(OWN_WEBHOOK).bind(now).bind(app.tenant.id).bind(HOLDER).bind(mailbox);
    let webhook = webhook.fetch_one(&app.pool).await.unwrap();
    execute(&app.pool, sqlx::query(EVENT).bind(lanes)).await;
    execute(&app.pool, sqlx::query(OWN_EVENT).bind(webhook).bind(mailbox)).await;
    execute(&app.pool, sqlx::query(OWN_TRIED_EVENT).bind(webhook).bind(mailbox).bind(now)).await;
    webhook
}

async fn execute(pool: &PgPool, query: Query<'_, Postgres, PgArguments>) {
    query.execute(pool).await.unwrap();
}

/// SQL for the id of row number `number` of a kind.
macro_rules! row_id {
    ($kind:literal, $number:literal) => {
        concat!("('01900000-0000-7000-", $kind, "-' || lpad(to_hex(", $number, "), 12, '0'))::uuid")
    };
}

const TENANT: &str = concat!(
    "INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit, webhook_limit,
                         token_limit, mailbox_bytes, created_at)
     SELECT ",
    row_id!("8000", "i"),
    ", 'tenant' || i, 72, '{72}', 100, 10, 1, 20, 52428800, $1 FROM generate_series(1, $2) AS i"
);

const DOMAIN: &str = concat!(
    "INSERT INTO domain (id, name, tenant, serves, shared_inboxes, created_at)
     SELECT ",
    row_id!("8001", "i"),
    ", 'd' || i || '.example', ",
    row_id!("8000", "1 + i % 1000"),
    ", true, false, $1 FROM generate_series(1, $2) AS i"
);

const TOKEN: &str = concat!(
    "INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at)
     SELECT ",
    row_id!("8002", "i"),
    ", ",
    row_id!("8000", "i"),
    ", 'live', 'x', 'x', sha256(i::text::bytea), 'x', $1 FROM generate_series(1, $2) AS i"
);

const MINTED_TOKEN: &str = concat!(
    "INSERT INTO minted_token (id, parent, tenant, hash, address_key, expires_at)
     SELECT ",
    row_id!("8005", "i"),
    ", ",
    row_id!("8002", "i"),
    ", ",
    row_id!("8000", "i"),
    ", sha256(('minted' || i)::bytea), ",
    row_id!("8006", "i"),
    ", $1::timestamptz + interval '1 hour' FROM generate_series(1, $2) AS i"
);

const MAILBOX: &str = concat!(
    "INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
     SELECT ",
    row_id!("8003", "i"),
    ", d.id, 'b' || i, CASE WHEN i % 2 = 0 THEN ",
    row_id!("8000", "1 + i % $3"),
    " END, 52428800, 'x', $1, $1
     FROM domain d, generate_series(1, $2) AS i WHERE d.name = 'inbox.localhost'"
);

/// Of the past: the worker creates those of the future.
const PARTITIONS: &str = "SELECT ensure_message_partition(c::smallint, t)
    FROM unnest('{1,72}'::integer[]) AS c,
         generate_series($1::timestamptz - make_interval(hours => c), $1, partition_width(c::smallint)) AS t";

/// Copies of the one message.
const MESSAGE: &str = concat!(
    "WITH first AS MATERIALIZED (
        SELECT m.address, m.size, m.sender, m.from_text, m.from_email, m.subject, m.preview, m.seq,
               r.for_clause_offset, r.data
        FROM message m JOIN raw r ON r.class = m.class AND r.mail = m.mail
        WHERE m.address LIKE 'first@%'
    ), placed AS (
        SELECT i, CASE WHEN i <= $2 * 3 / 10 OR i % 10 >= 8 THEN 72 ELSE 1 END::smallint AS class,
               CASE WHEN i <= $2 * 3 / 10 THEN 1 + (i % 3 = 0)::integer
                    WHEN i % 10 < 7 THEN 0 WHEN i % 10 < 9 THEN 1 ELSE 2 END::smallint AS kind,
               $1::timestamptz - CASE WHEN i <= $2 * 3 / 10
                    THEN interval '71 hours' - interval '70 hours' * (i / ($2 * 0.3)::float8)
                    ELSE interval '59 minutes' - interval '58 minutes' * ((i - $2 * 0.3) / ($2 * 0.7))::float8
                    END AS at
        FROM generate_series(1, $2) AS i
    ), addressed AS (
        SELECT *, (left(time_id(at)::text, 14) || '7' || substr(md5(i::text), 1, 3) || '-8'
                   || substr(md5(i::text), 4, 3) || '-' || substr(md5(i::text), 7, 12))::uuid AS id,
               CASE kind WHEN 0 THEN 'inbox' || i % $4 || '@inbox.localhost'
                         WHEN 1 THEN CASE WHEN i % $3 = 1 THEN 'box' ELSE 'b' || i % $3 END || '@inbox.localhost'
                         ELSE 'a' || i % 7 || '@' || CASE WHEN i % $3 = 0 OR i % $3 = 9 THEN 'custom'
                                                          ELSE 'd' || i % $3 END || '.example' END AS address,
               CASE kind WHEN 1 THEN CASE WHEN i % $3 = 1 THEN $5 ELSE ",
    row_id!("8003", "i % $3"),
    " END
                         WHEN 2 THEN CASE WHEN i % $3 = 0 OR i % $3 = 9 THEN $6 ELSE ",
    row_id!("8001", "i % $3"),
    " END
                         ELSE '00000000-0000-0000-0000-000000000000' END AS owner
        FROM placed
    ), stored AS (
        INSERT INTO raw (mail, class, part, recipients, for_clause_offset, stored_bytes, data)
        SELECT a.id, a.class, 0, 1, f.for_clause_offset, octet_length(f.data), f.data FROM addressed a CROSS JOIN first f
    )
    INSERT INTO message (id, inbox, owner, mail, seq, size, class, owner_kind, single_recipient, tenant, address, sender,
                         from_text, from_email, subject, preview)
    SELECT a.id, CASE kind WHEN 1 THEN a.owner
                 ELSE encode(substr(sha256(a.address::bytea), 1, 16), 'hex')::uuid END,
           a.owner, a.id, f.seq + a.i, f.size + length(a.address) - length(f.address), a.class, a.kind, true,
           coalesce(b.tenant, d.tenant), a.address, f.sender, f.from_text, f.from_email, f.subject, f.preview
    FROM addressed a CROSS JOIN first f
    LEFT JOIN mailbox b ON a.kind = 1 AND b.id = a.owner
    LEFT JOIN domain d ON a.kind = 2 AND d.id = a.owner"
);

/// A mailbox has mail in every partition.
const USAGE: &str = "INSERT INTO usage (scope, class, starts, bytes)
    SELECT $2, class, starts, 1000 FROM message_partition WHERE class = 72 AND starts <= $1 ON CONFLICT DO NOTHING";

const WEBHOOK: &str = concat!(
    "INSERT INTO webhook (id, tenant, url, events, secret, failure_count, due_at, created_at)
     SELECT ",
    row_id!("8004", "i"),
    ", ",
    row_id!("8000", "i"),
    ", 'https://hooks.example/', '{email.received}', 'x', i % 2, $1::timestamptz + interval '1 hour', $1
     FROM generate_series(1, $2) AS i"
);

const OWN_WEBHOOK: &str =
    "INSERT INTO webhook (id, tenant, url, events, secret, lease_holder, lease_expires_at, created_at, failing_mailboxes)
     VALUES (gen_random_uuid(), $2, 'https://hooks.example/', '{email.received}', 'x', $3,
             $1::timestamptz + interval '1 day', $1, ARRAY[$4])
     RETURNING id";

/// Fifty a webhook.
const EVENT: &str = concat!(
    "INSERT INTO webhook_event (webhook, seq, id, message, class)
     SELECT ",
    row_id!("8004", "i"),
    ", m.seq, gen_random_uuid(), m.id, m.class
     FROM generate_series(1, $1) AS i,
          (SELECT seq, id, class FROM message WHERE class = 72 ORDER BY id DESC LIMIT 50) m"
);

const OWN_EVENT: &str = "INSERT INTO webhook_event (webhook, seq, id, message, class, mailbox)
    SELECT $1, seq, gen_random_uuid(), id, class, inbox FROM message WHERE inbox = $2";

/// As many as a busy webhook whose receiver refuses much has: they are older than the others, and due later.
const OWN_TRIED_EVENT: &str =
    "INSERT INTO webhook_event (webhook, seq, id, message, class, mailbox, attempts, due_at)
     SELECT $1, -i, gen_random_uuid(), gen_random_uuid(), 72, $2, 3, $3::timestamptz + i * interval '1 second'
     FROM generate_series(3600, 43600) AS i";
