//! Rows that an administrator would have created, and states that tests need: domains, tenants, tokens, limits.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;
use sqlx::postgres::PgQueryResult;
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use uuid::Uuid;

/// The system domain of every test.
pub const SYSTEM_DOMAIN: &str = "inbox.localhost";

/// A Pro tenant with one token of each kind.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub id: Uuid,
    /// A `tm_live_` token.
    pub live: String,
    /// A `tm_pro_` token.
    pub pro: String,
}

/// A system domain; the first one is the default.
pub(crate) async fn insert_system_domain(
    pool: &PgPool,
    clock: &dyn Clock,
    name: &str,
    shared_inboxes: bool,
) -> Uuid {
    let id = new_id(clock.now());
    sqlx::query(
        "INSERT INTO domain (id, name, serves, shared_inboxes, is_default, sort_order, created_at)
         SELECT $1, $2, true, $3, NOT EXISTS (SELECT FROM domain WHERE is_default),
                (SELECT count(*) FROM domain)::integer, $4",
    )
    .bind(id)
    .bind(name)
    .bind(shared_inboxes)
    .bind(clock.now().to_sqlx())
    .execute(pool)
    .await
    .expect("the domain does not exist yet");
    id
}

/// A verified custom domain of a tenant.
pub(crate) async fn insert_custom_domain(pool: &PgPool, clock: &dyn Clock, tenant: Uuid, name: &str) -> Uuid {
    let id = new_id(clock.now());
    sqlx::query(
        "INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_token, txt_ok, mx_ok,
                             created_at, deadline, verified_at, next_check_at)
         VALUES ($1, $2, $3, true, false, $4, true, true, $5, $5, $5,
                 $5::timestamptz + interval '1 day')",
    )
    .bind(id)
    .bind(name)
    .bind(tenant)
    .bind(format!("token-of-{}", id.simple()))
    .bind(clock.now().to_sqlx())
    .execute(pool)
    .await
    .expect("the domain does not exist yet");
    id
}

/// Pending custom domains whose check is due: `each` of as many new tenants, named `d1.t1.test` and so on.
///
/// # Panics
/// The names are in use.
pub async fn insert_due_domains(pool: &PgPool, tenants: i32, each: i32) {
    let statement = "WITH owner AS (
            INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit, webhook_limit,
                                token_limit, mailbox_bytes, created_at)
            SELECT new_id(now()), 't' || t, 72, '{72}', 100, $2, 1, 20, 52428800, now() FROM generate_series(1, $1) t
            RETURNING id, name
        )
        INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_status, verify_token, created_at, deadline,
                            next_check_at)
        SELECT new_id(now()), 'd' || d || '.' || o.name || '.test', o.id, false, false, 'pending', 'token', now(),
               now() + interval '3 days', now()
        FROM owner o, generate_series(1, $2) d";
    let inserted = sqlx::query(statement).bind(tenants).bind(each).execute(pool).await;
    let inserted = inserted.expect("the names are new").rows_affected();
    assert_eq!(i32::try_from(inserted), Ok(tenants * each));
}

/// Fails the verification of a custom domain: its records are lost.
pub(crate) async fn end_verification(pool: &PgPool, domain: Uuid) {
    let statement =
        "UPDATE domain SET serves = false, verify_status = 'failed', failure_reason = 'records_lost'
                     WHERE id = $1";
    updates_one(sqlx::query(statement).bind(domain).execute(pool).await);
}

/// A Pro tenant with one token of each kind.
pub(crate) async fn insert_tenant(pool: &PgPool, clock: &dyn Clock, name: &str) -> Tenant {
    let id = new_id(clock.now());
    sqlx::query(
        "INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit,
                             webhook_limit, token_limit, mailbox_bytes, created_at)
         VALUES ($1, $2, 72, '{72}', 100, 10, 1, 20, 52428800, $3)",
    )
    .bind(id)
    .bind(name)
    .bind(clock.now().to_sqlx())
    .execute(pool)
    .await
    .expect("the tenant does not exist yet");
    let live = insert_token(pool, clock, id, TokenKind::Live).await;
    let pro = insert_token(pool, clock, id, TokenKind::Pro).await;
    Tenant { id, live, pro }
}

/// A token of a tenant.
pub(crate) async fn insert_token(pool: &PgPool, clock: &dyn Clock, tenant: Uuid, kind: TokenKind) -> String {
    let token = PlainToken::generate(kind).expect("the operating system gives randomness");
    sqlx::query(
        "INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at)
         VALUES ($1, $2, $3, 'test', $4, $5, 'test', $6)",
    )
    .bind(new_id(clock.now()))
    .bind(tenant)
    .bind(kind.as_str())
    .bind(token.hint())
    .bind(token.hash().as_bytes().as_slice())
    .bind(clock.now().to_sqlx())
    .execute(pool)
    .await
    .expect("the tenant exists");
    token.expose().to_owned()
}

/// A limit of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantLimit {
    /// Mailboxes.
    Mailboxes,
    /// Custom domains.
    Domains,
    /// Webhooks.
    Webhooks,
    /// Tokens of both kinds.
    Tokens,
}

/// Sets a limit of a tenant.
///
/// # Panics
/// There is no such tenant.
pub async fn set_limit(pool: &PgPool, tenant: Uuid, limit: TenantLimit, most: i32) {
    let statement = match limit {
        TenantLimit::Mailboxes => "UPDATE tenant SET mailbox_limit = $2 WHERE id = $1",
        TenantLimit::Domains => "UPDATE tenant SET domain_limit = $2 WHERE id = $1",
        TenantLimit::Webhooks => "UPDATE tenant SET webhook_limit = $2 WHERE id = $1",
        TenantLimit::Tokens => "UPDATE tenant SET token_limit = $2 WHERE id = $1",
    };
    updates_one(sqlx::query(statement).bind(tenant).bind(most).execute(pool).await);
}

/// Sets the retention of a tenant's new mail, hours; its earlier ones stay readable.
///
/// # Panics
/// There is no such tenant, or no class of that many hours.
pub async fn set_retention(pool: &PgPool, tenant: Uuid, hours: i16) {
    let set = sqlx::query(
        "UPDATE tenant SET retention_hours = $2,
                classes = (SELECT array_agg(DISTINCT class ORDER BY class) FROM unnest(classes || $2) AS class)
          WHERE id = $1",
    );
    updates_one(set.bind(tenant).bind(hours).execute(pool).await);
}

/// Lifts all limits of all tenants.
///
/// # Panics
/// Postgres does not answer.
pub async fn lift_limits(pool: &PgPool) {
    sqlx::query(
        "UPDATE tenant SET mailbox_limit = 1000000, domain_limit = 1000000, webhook_limit = 1000000,
                           token_limit = 1000000",
    )
    .execute(pool)
    .await
    .expect("limits can be changed");
}

/// Suspends a tenant.
///
/// # Panics
/// There is no such tenant.
pub async fn suspend_tenant(pool: &PgPool, tenant: Uuid) {
    let statement = "UPDATE tenant SET suspended = true WHERE id = $1";
    updates_one(sqlx::query(statement).bind(tenant).execute(pool).await);
}

/// Sets the time at which a token expires.
///
/// # Panics
/// There is no such token.
pub async fn expire_token(pool: &PgPool, token: &str, at: Timestamp) {
    let statement = "UPDATE api_token SET expires_at = $2 WHERE hash = $1";
    updates_one(sqlx::query(statement).bind(token_hash(token)).bind(at.to_sqlx()).execute(pool).await);
}

/// Revokes a token.
///
/// # Panics
/// There is no such token.
pub async fn revoke_token(pool: &PgPool, token: &str, at: Timestamp) {
    let statement = "UPDATE api_token SET revoked_at = $2 WHERE hash = $1";
    updates_one(sqlx::query(statement).bind(token_hash(token)).bind(at.to_sqlx()).execute(pool).await);
}

/// Deletes the row of a token.
///
/// # Panics
/// There is no such token.
pub async fn delete_token(pool: &PgPool, token: &str) {
    let statement = "DELETE FROM api_token WHERE hash = $1";
    updates_one(sqlx::query(statement).bind(token_hash(token)).execute(pool).await);
}

fn token_hash(token: &str) -> Vec<u8> {
    let kind = if token.starts_with(TokenKind::Pro.prefix()) { TokenKind::Pro } else { TokenKind::Live };
    TokenHash::from_presented(kind, token).expect("a token of the tests").as_bytes().to_vec()
}

/// Invalidates all JWTs of a mailbox, as a password reset does.
///
/// # Panics
/// There is no such mailbox.
pub async fn advance_password_epoch(pool: &PgPool, mailbox: Uuid) {
    let statement = "UPDATE mailbox SET password_epoch = password_epoch + 1 WHERE id = $1";
    updates_one(sqlx::query(statement).bind(mailbox).execute(pool).await);
}

/// A kind of row that Kubernetes may manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedKind {
    /// A mailbox.
    Mailbox,
    /// A custom domain.
    Domain,
    /// A webhook.
    Webhook,
    /// A token.
    Token,
}

/// Marks a row as managed by Kubernetes.
///
/// # Panics
/// There is no such row.
pub async fn manage_by_kubernetes(pool: &PgPool, kind: ManagedKind, id: Uuid) {
    let statement = match kind {
        ManagedKind::Mailbox => "UPDATE mailbox SET managed_by = 'kubernetes' WHERE id = $1",
        ManagedKind::Domain => "UPDATE domain SET managed_by = 'kubernetes' WHERE id = $1",
        ManagedKind::Webhook => "UPDATE webhook SET managed_by = 'kubernetes' WHERE id = $1",
        ManagedKind::Token => "UPDATE api_token SET managed_by = 'kubernetes' WHERE id = $1",
    };
    updates_one(sqlx::query(statement).bind(id).execute(pool).await);
}

/// Asserts that a statement changed one row.
fn updates_one(result: sqlx::Result<PgQueryResult>) {
    assert_eq!(result.expect("a row can be changed").rows_affected(), 1);
}

/// Sets the URL of a webhook to one that can't be set over HTTP.
///
/// # Panics
/// The statement fails.
pub async fn set_webhook_url(pool: &PgPool, webhook: Uuid, url: &str) {
    let set = sqlx::query("UPDATE webhook SET url = $1 WHERE id = $2").bind(url).bind(webhook);
    assert_eq!(set.execute(pool).await.expect("any URL can be stored").rows_affected(), 1);
}

/// Sets how many attempts of each webhook have failed in a row.
///
/// # Panics
/// The statement fails.
pub async fn set_webhook_failures(pool: &PgPool, failures: i32) {
    let set = sqlx::query("UPDATE webhook SET failure_count = $1").bind(failures).execute(pool).await;
    set.expect("the number is valid");
}

/// Expires the leases of webhook lanes, as if their time were over.
///
/// # Panics
/// The statement fails.
pub async fn expire_webhook_leases(pool: &PgPool) {
    let expire = "UPDATE webhook SET lease_expires_at = '-infinity' WHERE lease_holder IS NOT NULL";
    sqlx::query(expire).execute(pool).await.expect("leases can be expired");
}

/// Makes every webhook due now.
///
/// # Panics
/// The statement fails.
pub async fn make_webhooks_due(pool: &PgPool) {
    let due = sqlx::query("UPDATE webhook SET due_at = '-infinity'").execute(pool).await;
    due.expect("webhooks can be due");
}

/// Webhooks with a lease.
///
/// # Panics
/// The statement fails.
pub async fn count_leased_webhooks(pool: &PgPool) -> i64 {
    let leased = sqlx::query_scalar("SELECT count(*) FROM webhook WHERE lease_holder IS NOT NULL");
    leased.fetch_one(pool).await.expect("webhooks can be counted")
}

/// Pending events of all webhooks.
///
/// # Panics
/// The statement fails.
pub async fn count_pending_events(pool: &PgPool) -> i64 {
    let pending = sqlx::query_scalar("SELECT count(*) FROM webhook_event");
    pending.fetch_one(pool).await.expect("events can be counted")
}

/// Serves a custom domain whose verification has ended.
///
/// # Panics
/// The statement fails.
pub async fn restore_verification(pool: &PgPool, domain: Uuid) {
    let restored = sqlx::query(
        "UPDATE domain SET serves = true, verify_status = 'verified', failure_reason = NULL WHERE id = $1",
    )
    .bind(domain)
    .execute(pool)
    .await
    .expect("the domain may be verified");
    assert_eq!(restored.rows_affected(), 1);
}

/// Gives an address this many more messages after the ones that it has, each a copy of its newest with its raw data.
///
/// # Panics
/// It has none.
pub async fn copy_newest_message(pool: &PgPool, address: &str, copies: i64) {
    let statement = "WITH newest AS (SELECT m AS row FROM message m WHERE m.address = $1 ORDER BY m.seq DESC LIMIT 1),
        advanced AS (UPDATE stream SET seq = seq + $2 WHERE singleton RETURNING seq - $2 AS base)
        INSERT INTO message
        SELECT c.* FROM newest m, advanced, generate_series(1, $2) AS n, jsonb_populate_record(
            m.row, jsonb_build_object('id', new_id(id_time((m.row).id)), 'seq', base + n, 'is_read', false)) AS c";
    let copied = sqlx::query(statement).bind(address).bind(copies).execute(pool).await;
    let copied = copied.expect("messages can be copied").rows_affected();
    assert_eq!(i64::try_from(copied), Ok(copies), "{address} has a message");
}

/// Sets how many mailboxes a tenant may have, and the quota of each in bytes.
///
/// # Panics
/// There is no such tenant.
pub async fn set_mailbox_quota(pool: &PgPool, tenant: Uuid, mailboxes: i32, mailbox_bytes: i64) {
    let statement = "UPDATE tenant SET mailbox_limit = $2, mailbox_bytes = $3 WHERE id = $1";
    let query = sqlx::query(statement).bind(tenant).bind(mailboxes).bind(mailbox_bytes);
    updates_one(query.execute(pool).await);
}
