//! Every way in which a right ends.

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

use super::world::World;

/// What ends rights. Requests go to the first process, whose clients nobody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `DELETE /pro/api/tokens/{id}`
    TokenRevoked,
    /// `tempmail token revoke`
    TokenRevokedByCommand,
    /// The token's own time, which was set when it was made.
    TokenExpires,
    /// The token's time, which is set to an earlier one.
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
    /// The records of a custom domain were wrong for too long.
    DomainLost,
    /// Another tenant's records are there.
    DomainHandedOver,
    /// `DELETE /pro/api/domains/{id}`
    DomainDeleted,
    /// `tempmail system-domain set --shared-inboxes false`
    SharedInboxesOff,
    /// `tempmail system-domain remove --delete-mailboxes`
    SystemDomainRemoved,
}

impl Ending {
    /// Whether it comes by itself, so that it is prepared last.
    pub fn comes_by_itself(self) -> bool {
        self == Self::TokenExpires
    }

    /// What has to be so before anybody listens.
    pub async fn prepare(self, fleet: &Fleet, dns: &TestDns, world: &World) {
        match self {
            Self::DomainHandedOver => {
                dns.domain(&world.custom_domain(), 1).await;
            }
            // Everybody is to listen and to have met a mail before, on a slow machine, too.
            Self::TokenExpires => expire_in(fleet, &world.tenant, Duration::from_secs(20)).await,
            Self::ExpiryBroughtForward => expire_in(fleet, &world.tenant, Duration::from_secs(3600)).await,
            _ => {}
        }
    }

    /// Ends the right; returns when it has ended.
    pub async fn happen(self, fleet: &Fleet, dns: &TestDns, world: &World) -> Instant {
        let (name, pro) = (world.name, world.tenant.pro.as_str());
        match self {
            Self::TokenRevoked => {
                for id in tokens(fleet, &world.tenant).await {
                    request(fleet, pro, Method::DELETE, &format!("/pro/api/tokens/{id}"), None, 204).await;
                }
            }
            Self::TokenRevokedByCommand => {
                for id in tokens(fleet, &world.tenant).await {
                    fleet.tempmail(&format!("token revoke {name} {id}")).await.success();
                }
            }
            Self::TokenExpires => return expires_at(fleet, &world.tenant).await,
            Self::ExpiryBroughtForward => {
                expire_in(fleet, &world.tenant, Duration::from_secs(1)).await;
                return expires_at(fleet, &world.tenant).await;
            }
            Self::TenantSuspended => {
                fleet.tempmail(&format!("tenant suspend {name}")).await.success();
            }
            Self::TenantDeleted => {
                fleet.tempmail(&format!("tenant delete {name} --yes")).await.success();
            }
            Self::PasswordReset => {
                for mailbox in [&world.mailbox, &world.domain_mailbox] {
                    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
                    let body = json!({"password": "another horse"});
                    request(fleet, pro, Method::PUT, &path, Some(body), 200).await;
                }
            }
            Self::MailboxDeleted => {
                for mailbox in [&world.mailbox, &world.domain_mailbox] {
                    let path = format!("/pro/api/accounts/{}", mailbox.id);
                    request(fleet, pro, Method::DELETE, &path, None, 204).await;
                }
            }
            Self::MailboxDeletedByOwner => {
                for mailbox in [&world.mailbox, &world.domain_mailbox, &world.free] {
                    request(fleet, &mailbox.jwt, Method::DELETE, "/api/me", None, 204).await;
                }
            }
            Self::MailboxIdle => idle(fleet, &world.free).await,
            Self::DomainLost => fleet.end_verification(world.custom_domain).await,
            Self::DomainHandedOver => hand_over(fleet, dns, &world.custom_domain()).await,
            Self::DomainDeleted => {
                let path = format!("/pro/api/domains/{}", world.custom_domain);
                request(fleet, pro, Method::DELETE, &path, None, 204).await;
            }
            Self::SharedInboxesOff => {
                let command = format!("system-domain set {} --shared-inboxes false", world.system_domain());
                fleet.tempmail(&command).await.success();
            }
            Self::SystemDomainRemoved => {
                let command = format!("system-domain remove {} --delete-mailboxes", world.system_domain());
                fleet.tempmail(&command).await.success();
            }
        }
        Instant::now()
    }
}

/// The time of the processes.
fn now() -> Timestamp {
    SystemClock::default().now()
}

/// Ids of a tenant's tokens; that of its Pro token, which revokes them, is the last.
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

/// Makes a mailbox one that nobody has read for long. A worker looks for those when it starts.
async fn idle(fleet: &Fleet, mailbox: &Mailbox) {
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

/// Gives a domain, whose holder has no records, to a new tenant.
pub async fn hand_over(fleet: &Fleet, dns: &TestDns, domain: &str) {
    let buyer = fleet.another_tenant(&format!("buyer-of-{domain}")).await;
    take_over(fleet, dns, &buyer, domain).await;
}

/// Gives a domain, whose holder has no records, to a tenant.
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

/// A request of the first process that succeeds.
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
