//! A stream ends with the right to it: within 5 s, and with nothing in it that came later.

use std::time::Duration;

use reqwest::Method;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, EventStream};
use tokio::time::Instant;
use uuid::Uuid;

use super::{USER, ask};

const BOX: &str = "box@inbox.localhost";
const OF_BOX: &str = "/v1/sse/addr?address=box@inbox.localhost";
const OF_DOMAIN: &str = "/v1/sse/addr?address=any@ours.example";
const OF_SHARED: &str = "/v1/sse/addr?address=shared@inbox.localhost";

/// A tenant with a mailbox and a domain, and a token of it to be taken away.
struct Held {
    app: App,
    mailbox: Mailbox,
    domain: Uuid,
    token: String,
}

impl Held {
    async fn start() -> Self {
        let app = App::start().await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), BOX).await;
        let domain = app.custom_domain(&app.tenant, "ours.example").await;
        let token = app.token(&app.tenant, TokenKind::Live).await;
        Self { app, mailbox, domain, token }
    }

    async fn streams(&self, paths: &[&str]) -> Vec<EventStream> {
        let mut streams = Vec::new();
        for path in paths {
            let mut stream = EventStream::open(ask(&self.app, &self.token, path)).await;
            stream.block().await;
            streams.push(stream);
        }
        streams
    }

    async fn of_token(&self, statement: &'static str) {
        let hash = TokenHash::from_presented(TokenKind::Live, &self.token).unwrap();
        let changed = sqlx::query(statement).bind(hash.as_bytes().as_slice()).execute(&self.app.pool).await;
        assert_eq!(changed.unwrap().rows_affected(), 1);
    }
}

const ALL: &[&str] = &[OF_BOX, OF_DOMAIN, OF_SHARED, USER];

/// Asserts that all of them end in time, and properly.
async fn end(streams: Vec<EventStream>) {
    let since = Instant::now();
    for stream in streams {
        let end = stream.ended().await;
        assert!(end.is_whole && end.events.is_empty(), "{end:?}");
    }
    assert!(since.elapsed() <= Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_token_revoked() {
    let held = Held::start().await;
    let streams = held.streams(ALL).await;
    held.of_token("UPDATE api_token SET revoked_at = created_at WHERE hash = $1").await;
    end(streams).await;
    let answer = EventStream::refused(ask(&held.app, &held.token, USER)).await;
    answer.is_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_token_deleted() {
    let held = Held::start().await;
    let streams = held.streams(ALL).await;
    held.of_token("DELETE FROM api_token WHERE hash = $1").await;
    end(streams).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_token_expired_by_business_time() {
    let held = Held::start().await;
    held.of_token("UPDATE api_token SET expires_at = created_at + interval '1 day' WHERE hash = $1").await;
    let streams = held.streams(ALL).await;
    held.app.advance_hours(25);
    end(streams).await;
    let answer = EventStream::refused(ask(&held.app, &held.token, USER)).await;
    answer.is_v1_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_expiry_that_is_set_while_it_is_open() {
    let held = Held::start().await;
    let streams = held.streams(ALL).await;
    held.of_token("UPDATE api_token SET expires_at = created_at + interval '1 hour' WHERE hash = $1").await;
    // Seen before the time moves: so that it is the expiry that ends them.
    let mut other = held.streams(&[OF_SHARED]).await;
    super::is_next(&held.app, &mut other[0], "shared@inbox.localhost").await;
    held.app.advance_hours(2);
    let since = Instant::now();
    for stream in streams.into_iter().chain(other) {
        assert!(stream.ended().await.is_whole);
    }
    assert!(since.elapsed() <= Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_tenant_suspended() {
    let held = Held::start().await;
    let streams = held.streams(ALL).await;
    let suspend = sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1").bind(held.app.tenant.id);
    suspend.execute(&held.app.pool).await.unwrap();
    end(streams).await;
    let answer = EventStream::refused(ask(&held.app, &held.token, USER)).await;
    answer.is_v1_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_mailbox_deleted() {
    let held = Held::start().await;
    let gone = held.streams(&[OF_BOX, "/v1/sse/addr?address=box%2Btag@inbox.localhost"]).await;
    let mut kept = held.streams(&[USER]).await;
    let deletion = held.app.request(Method::DELETE, "/api/me").bearer(&held.mailbox.jwt).send().await;
    assert_eq!(deletion.status, 204);
    end(gone).await;
    super::is_next(&held.app, &mut kept[0], "any@ours.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_domain_lost_or_deleted() {
    for deleted in [false, true] {
        let held = Held::start().await;
        held.app.mailbox(Some(&held.app.tenant.pro), "box@ours.example").await;
        let gone = held.streams(&[OF_DOMAIN, "/v1/sse/addr?address=box@ours.example"]).await;
        let mut kept = held.streams(&[USER]).await;
        if deleted {
            let path = format!("/v1/domains/{}", held.domain);
            assert_eq!(held.app.delete(&path).await.status, 204);
        } else {
            held.app.end_verification(held.domain).await;
        }
        end(gone).await;
        super::is_next(&held.app, &mut kept[0], BOX).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_shared_inbox_taken_by_anothers_mailbox() {
    let held = Held::start().await;
    let other = held.app.another_tenant("lighthouse").await;
    let gone = held.streams(&[OF_SHARED, "/v1/sse/addr?address=shared%2Btag@inbox.localhost"]).await;
    held.app.mailbox(Some(&other.pro), "shared@inbox.localhost").await;
    held.app.deliver("shared@inbox.localhost", "theirs", "").await;
    held.app.deliver("shared+tag@inbox.localhost", "theirs", "").await;
    end(gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn and_goes_on_where_the_mailbox_is_its_own_tenants() {
    let held = Held::start().await;
    let mut streams = held.streams(&[OF_SHARED]).await;
    super::is_next(&held.app, &mut streams[0], "shared@inbox.localhost").await;
    held.app.mailbox(Some(&held.app.tenant.pro), "shared@inbox.localhost").await;
    super::is_next(&held.app, &mut streams[0], "shared@inbox.localhost").await;
    super::is_next(&held.app, &mut streams[0], "shared+tag@inbox.localhost").await;
}
