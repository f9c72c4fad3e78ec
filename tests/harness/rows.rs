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
