//! Statements of loops, sent by the store itself.

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::token::TokenKind;
use tempmail_store::{
    ClaimLimits, ClaimScope, DeliveryAttempt, EventCursor, EventLimits, PendingEvent, RecordOutcome,
    ScanRange, ScanRequest, Store,
};
use uuid::Uuid;

use super::REPEATED;
use super::fixture::{self, HOLDER, QueryFixture};
use super::session::Session;

/// Statements of loops of the API server.
pub async fn record_stream(fixture: &QueryFixture, session: &mut Session<'_>) {
    let app = &fixture.app;
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    let now = app.clock.now();
    let process: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(store.pool()).await.unwrap();
    session.process = Some(process.unsigned_abs());
    let head = store.poll_stream(None).await.unwrap();
    let position = head.position;
    session
        .record("a poll of the stream", &["poll_stream"], |_| async {
            store.poll_stream(Some(&head.snapshot)).await.unwrap();
        })
        .await;
    let recent = now - SignedDuration::from_mins(15);
    session
        .record("a gap in the stream", &["list_arrivals"], |_| async {
            let found = store.list_arrivals(position - 100, position, recent).await;
            assert_eq!(found.unwrap().len(), 100);
        })
        .await;
    let arrivals = store.list_arrivals(position - 100, position, recent).await.unwrap();
    let class = arrivals[0].class;
    let ids: Vec<Uuid> = arrivals.iter().filter(|one| one.class == class).map(|one| one.id).collect();
    session
        .record("arrivals with subscribers", &["list_messages_by_id"], |_| async {
            assert_eq!(store.list_messages_by_id(class, &ids).await.unwrap().rows.len(), ids.len());
        })
        .await;
    session
        .record("a WebSocket", &["scan_mailbox"], |_| async {
            let scan = store.scan_mailbox(fixture.mailbox.id, 0, 20, now).await.unwrap();
            assert!(scan.is_some());
        })
        .await;
    session
        .record("a long poll for all mail of a tenant", &["scan_tenant"], |number| {
            let range = if number % 2 == 0 { ScanRange::After(0) } else { ScanRange::Before(i64::MAX) };
            let store = &store;
            async move {
                let scan =
                    store.scan_tenant(app.tenant.id, None, ScanRequest::new(range, 20), now).await.unwrap();
                assert_eq!(scan.unwrap().rows.len(), 20);
            }
        })
        .await;
    let token: Uuid = sqlx::query_scalar("SELECT id FROM api_token WHERE tenant = $1 AND kind = 'live'")
        .bind(app.tenant.id)
        .fetch_one(&app.pool)
        .await
        .unwrap();
    session
        .record("a Pro session", &["find_token_by_id"], |_| async {
            assert!(store.find_token_by_id(TokenKind::Live, token).await.unwrap().is_some());
        })
        .await;
    let minted = app.mint(&app.tenant.live, &fixture.mailbox.address).await.id;
    session
        .record("a wait of a minted token", &["find_minted_token"], |_| async {
            assert!(store.find_minted_token(minted).await.unwrap().is_some());
        })
        .await;
}

/// Statements of a worker that delivers events to a webhook.
pub async fn record_webhooks(fixture: &QueryFixture, session: &mut Session<'_>) {
    let app = &fixture.app;
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    let process: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(store.pool()).await.unwrap();
    session.process = Some(process.unsigned_abs());
    let now = app.clock.now();
    // Webhooks of others are due then, for this process only.
    let then = now + SignedDuration::from_hours(2);
    session
        .record("a claim of due webhooks", &["claim_webhooks"], |_| async {
            let limits = ClaimLimits { healthy: 5, failing: 1 };
            let claimed = store.claim_webhooks(HOLDER, &ClaimScope::All, limits, &[], then).await.unwrap();
            assert_eq!(claimed.len(), 6);
        })
        .await;
    let tenants = vec![app.tenant.id];
    let scope = ClaimScope::Of { tenants, webhooks: vec![fixture.webhook, Uuid::nil()] };
    session
        .record("a claim after mail to a tenant", &["claim_webhooks_of"], |_| async {
            let limits = ClaimLimits { healthy: 5, failing: 1 };
            let claimed = store.claim_webhooks(HOLDER, &scope, limits, &[], now).await.unwrap();
            assert_eq!(claimed.len(), 1);
        })
        .await;
    let (webhook, store) = (fixture.webhook, &store);
    let all = EventLimits { untried: 1_000, retried: 1_000 };
    let start = EventCursor::default();
    let pending = store.list_pending_events(webhook, HOLDER, start, all, now).await.unwrap().unwrap();
    let events: Vec<_> = pending.events.chunks(3).collect();
    assert!(events.len() >= usize::from(REPEATED), "{} events wait", pending.events.len());
    session
        .record("a webhook's next events", &["list_pending_events"], |number| {
            let after = EventCursor::before(events[number % 20][0].seq);
            let limits = EventLimits { untried: 16, retried: 4 };
            async move {
                let pending = store.list_pending_events(webhook, HOLDER, after, limits, now).await.unwrap();
                assert!(!pending.unwrap().events.is_empty());
            }
        })
        .await;
    session
        .record("the event that a failing webhook is tried with", &["find_probe"], |_| async {
            let probe = store.find_probe(webhook, HOLDER, &[], now).await.unwrap().unwrap();
            assert_eq!(probe.pending.events.len(), 1);
        })
        .await;
    session
        .record("a webhook's attempts", &["record_deliveries"], |number| {
            let failed = |index: usize| (number % 4 == 0 && index == 2).then_some("http_status");
            let attempt = |(index, event): (usize, &PendingEvent)| DeliveryAttempt {
                id: new_id(now),
                event: event.id,
                seq: event.seq,
                mailbox: event.message.owner,
                number: 1,
                started_at: now,
                status_code: 204,
                error: failed(index),
                detail: None,
                duration_ms: 12,
                retry_after: None,
            };
            let attempts: Vec<_> = events[number].iter().enumerate().map(attempt).collect();
            async move {
                let gaps = [SignedDuration::from_secs(5); 9];
                let recorded = store.record_deliveries(webhook, HOLDER, &attempts, &gaps, now).await;
                assert!(matches!(recorded.unwrap(), RecordOutcome::Active { .. }));
            }
        })
        .await;
    session
        .record("a renewal of leases", &["renew_webhook_leases"], |_| async {
            store.renew_webhook_leases(HOLDER, &[webhook]).await.unwrap();
        })
        .await;
    session
        .record("a release of a lease", &["release_webhook_lease"], |_| async {
            store.release_webhook_lease(webhook, HOLDER, None).await.unwrap();
        })
        .await;
    session
        .record("a measurement of the backlog", &["webhook_backlog"], |_| async {
            assert!(store.webhook_backlog().await.unwrap().webhooks >= i64::from(fixture::LANES));
        })
        .await;
}
