//! Everything that ends access.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::app::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Tenant, TestDns};
use uuid::Uuid;

use super::fixture::TenantFixture;

/// What ends access. Requests go to the first process, which has no subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// `DELETE /pro/api/tokens/{id}`
    TokenRevoked,
    /// `tempmail token revoke`
    TokenRevokedByCommand,
    /// The expiry of the token, set when it was created.
    TokenExpires,
    /// The expiry of the token, set to an earlier time.
    ExpiryBroughtForward,
    /// `tempmail tenant suspend`
    TenantSuspended,
    /// `tempmail tenant delete`
    TenantDeleted,
    /// `PUT /pro/api/accounts/{id}/reset-password`
    PasswordReset,
    /// `DELETE /pro/api/accounts/{id}`
    MailboxDeleted,
    /// `DELETE /api/me`
    MailboxDeletedByOwner,
    /// The worker, 30 days after the last sign-in.
    MailboxIdle,
    /// The records of a custom domain are lost for too long.
    DomainLost,
    /// Another tenant verifies the domain.
    DomainHandedOver,
    /// `DELETE /pro/api/domains/{id}`
    DomainDeleted,
    /// `tempmail system-domain set --shared-inboxes false`
    SharedInboxesOff,
    /// `tempmail system-domain remove --delete-mailboxes`
    SystemDomainRemoved,
}

impl Cause {
    /// Whether it happens by itself at a time set beforehand, so that it is prepared last.
    pub fn is_timed(self) -> bool {
        self == Self::TokenExpires
    }

    /// Prepares it before anybody subscribes.
    pub async fn prepare(self, fleet: &Fleet, dns: &TestDns, fixture: &TenantFixture) {
        match self {
            Self::DomainHandedOver => {
                dns.domain(&fixture.custom_domain_name(), 1).await;
            }
            // Everybody must be subscribed and have received a mail before, on a slow machine, too.
            Self::TokenExpires => expire_in(fleet, &fixture.tenant, Duration::from_secs(30)).await,
            Self::ExpiryBroughtForward => expire_in(fleet, &fixture.tenant, Duration::from_secs(3600)).await,
            _ => {}
        }
    }

    /// Ends the access; returns when it has ended.
    pub async fn apply(self, fleet: &Fleet, dns: &TestDns, fixture: &TenantFixture) -> Instant {
        let (name, pro) = (fixture.name, fixture.tenant.pro.as_str());
        match self {
            Self::TokenRevoked => {
                for id in tokens(fleet, &fixture.tenant).await {
                    request(fleet, pro, Method::DELETE, &format!("/pro/api/tokens/{id}"), None, 204).await;
                }
            }
            Self::TokenRevokedByCommand => {
                for id in tokens(fleet, &fixture.tenant).await {
                    fleet.tempmail(&format!("token revoke {name} {id}")).await.success();
                }
            }
            Self::TokenExpires => return expires_at(fleet, &fixture.tenant).await,
            Self::ExpiryBroughtForward => {
                expire_in(fleet, &fixture.tenant, Duration::from_secs(1)).await;
                return expires_at(fleet, &fixture.tenant).await;
            }
            Self::TenantSuspended => {
                fleet.tempmail(&format!("tenant suspend {name}")).await.success();
            }
            Self::TenantDeleted => {
                fleet.tempmail(&format!("tenant delete {name} --yes")).await.success();
            }
            Self::PasswordReset => {
                for mailbox in [&fixture.mailbox, &fixture.domain_mailbox] {
                    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
                    let body = json!({"password": "another horse"});
                    request(fleet, pro, Method::PUT, &path, Some(body), 200).await;
                }
            }
            Self::MailboxDeleted => {
                for mailbox in [&fixture.mailbox, &fixture.domain_mailbox] {
                    let path = format!("/pro/api/accounts/{}", mailbox.id);
                    request(fleet, pro, Method::DELETE, &path, None, 204).await;
                }
            }
            Self::MailboxDeletedByOwner => {
                for mailbox in [&fixture.mailbox, &fixture.domain_mailbox, &fixture.free] {
                    request(fleet, &mailbox.jwt, Method::DELETE, "/api/me", None, 204).await;
                }
            }
            Self::MailboxIdle => expire_idle_mailbox(fleet, &fixture.free).await,
            Self::DomainLost => fleet.end_verification(fixture.custom_domain).await,
            Self::DomainHandedOver => hand_over(fleet, dns, &fixture.custom_domain_name()).await,
            Self::DomainDeleted => {
                let path = format!("/pro/api/domains/{}", fixture.custom_domain);
                request(fleet, pro, Method::DELETE, &path, None, 204).await;
            }
            Self::SharedInboxesOff => {
                let command =
                    format!("system-domain set {} --shared-inboxes false", fixture.system_domain_name());
                fleet.tempmail(&command).await.success();
            }
            Self::SystemDomainRemoved => {
                let command =
                    format!("system-domain remove {} --delete-mailboxes", fixture.system_domain_name());
                fleet.tempmail(&command).await.success();
            }
        }
        Instant::now()
    }
}

/// System time, which the processes use.
fn now() -> Timestamp {
    SystemClock::default().now()
}

/// Ids of a tenant's tokens; the last is that of its Pro token, which revokes them.
async fn tokens(fleet: &Fleet, tenant: &Tenant) -> Vec<Uuid> {
    sqlx::query_scalar("SELECT id FROM api_token WHERE tenant = $1 ORDER BY kind")
        .bind(tenant.id)
        .fetch_all(&fleet.pool)
        .await
        .unwrap()
}

async fn expire_in(fleet: &Fleet, tenant: &Tenant, after: Duration) {
    let at = now() + after;
    sqlx::query("UPDATE api_token SET expires_at = $2 WHERE tenant = $1")
        .bind(tenant.id)
        .bind(at.to_sqlx())
        .execute(&fleet.pool)
        .await
        .unwrap();
}

async fn expires_at(fleet: &Fleet, tenant: &Tenant) -> Instant {
    let at: jiff_sqlx::Timestamp =
        sqlx::query_scalar("SELECT max(expires_at) FROM api_token WHERE tenant = $1")
            .bind(tenant.id)
            .fetch_one(&fleet.pool)
            .await
            .unwrap();
    let left = at.to_jiff().duration_since(now());
    Instant::now() + Duration::try_from(left).unwrap_or_default()
}

/// Makes a mailbox idle. A worker removes idle mailboxes when it starts.
async fn expire_idle_mailbox(fleet: &Fleet, mailbox: &Mailbox) {
    let long_ago = now() - SignedDuration::from_hours(31 * 24);
    sqlx::query("UPDATE mailbox SET seen_at = $2 WHERE id = $1")
        .bind(mailbox.id)
        .bind(long_ago.to_sqlx())
        .execute(&fleet.pool)
        .await
        .unwrap();
    fleet.worker(0).restart().await;
    eventually("the worker removes an idle mailbox", || async {
        let removed: bool = sqlx::query_scalar("SELECT removed_at IS NOT NULL FROM mailbox WHERE id = $1")
            .bind(mailbox.id)
            .fetch_one(&fleet.pool)
            .await
            .unwrap();
        removed.then_some(())
    })
    .await;
}

/// Hands a domain without records over to a new tenant.
async fn hand_over(fleet: &Fleet, dns: &TestDns, domain: &str) {
    let buyer = fleet.another_tenant(&format!("buyer-of-{domain}")).await;
    take_over(fleet, dns, &buyer, domain).await;
}

/// Hands a domain without records over to a tenant.
pub async fn take_over(fleet: &Fleet, dns: &TestDns, buyer: &Tenant, domain: &str) {
    let body = json!({ "domain": domain });
    let bought = request(fleet, &buyer.pro, Method::POST, "/pro/api/domains", Some(body), 201).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (token, host) = (text(&bought["verify_token"]), text(&bought["dns_records"][1]["value"]));
    dns.set_verified(domain, &token, &host).await;
    let path = format!("/pro/api/domains/{}/verify", text(&bought["id"]));
    let verified = request(fleet, &buyer.pro, Method::POST, &path, None, 200).await;
    assert_eq!(verified["verify_status"], "verified", "{verified}");
}

/// A request to the first process, and its expected status.
async fn request(
    fleet: &Fleet,
    bearer: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
    status: u16,
) -> Value {
    let request = fleet.request(0, method, path).bearer(bearer);
    let request = match &body {
        Some(body) => request.json(body),
        None => request,
    };
    request.send().await.expect(status)
}
