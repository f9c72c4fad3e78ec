//! What an operator would have set up: domains, tenants, tokens, as rows.

use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TokenKind};
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
    .expect("the domain is free");
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
    .expect("the domain is free");
    id
}

/// Ends what a custom domain's verification gave: its records are lost.
pub(crate) async fn end_verification(pool: &PgPool, domain: Uuid) {
    let ended = sqlx::query(
        "UPDATE domain SET serves = false, verify_status = 'failed', failure_reason = 'records_lost'
         WHERE id = $1",
    )
    .bind(domain)
    .execute(pool)
    .await
    .expect("the domain may fail");
    assert_eq!(ended.rows_affected(), 1);
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
    .expect("the tenant's name is free");
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
    .expect("the tenant is there");
    token.expose().to_owned()
}

/// Sets how many webhooks each tenant may have.
///
/// # Panics
/// The statement fails.
pub async fn set_webhook_limit(pool: &PgPool, limit: i32) {
    let set = sqlx::query("UPDATE tenant SET webhook_limit = $1").bind(limit).execute(pool).await;
    set.expect("the limit is valid");
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

/// Revokes the Pro tokens of a tenant.
///
/// # Panics
/// The statement fails.
pub async fn revoke_pro_tokens(pool: &PgPool, clock: &dyn Clock, tenant: Uuid) {
    sqlx::query("UPDATE api_token SET revoked_at = $1 WHERE kind = 'pro' AND tenant = $2")
        .bind(clock.now().to_sqlx())
        .bind(tenant)
        .execute(pool)
        .await
        .expect("tokens can be revoked");
}

/// Sets how many mailboxes a tenant may have, and the quota of each in bytes.
///
/// # Panics
/// There is no such tenant.
pub async fn set_mailbox_quota(pool: &PgPool, tenant: Uuid, mailboxes: i32, mailbox_bytes: i64) {
    let updated = sqlx::query("UPDATE tenant SET mailbox_limit = $2, mailbox_bytes = $3 WHERE id = $1")
        .bind(tenant)
        .bind(mailboxes)
        .bind(mailbox_bytes)
        .execute(pool)
        .await
        .expect("the quota can be changed");
    assert_eq!(updated.rows_affected(), 1);
}
