//! A stream ends when access ends. `realtime::chaos` asserts that it does so within 5 s.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, EventStream, rows};
use uuid::Uuid;

use super::{USER, request};

const BOX: &str = "box@inbox.localhost";
const OF_BOX: &str = "/v1/sse/addr?address=box@inbox.localhost";
const OF_DOMAIN: &str = "/v1/sse/addr?address=any@ours.example";
const OF_SHARED: &str = "/v1/sse/addr?address=shared@inbox.localhost";

/// A tenant with a mailbox, a domain and a token.
struct SseFixture {
    app: App,
    mailbox: Mailbox,
    domain: Uuid,
    token: String,
}

impl SseFixture {
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
            let mut stream = EventStream::open(request(&self.app, &self.token, path)).await;
            stream.block().await;
            streams.push(stream);
        }
        streams
    }

    fn now(&self) -> Timestamp {
        self.app.clock.now()
    }
}

const ALL: &[&str] = &[OF_BOX, OF_DOMAIN, OF_SHARED, USER];

/// Asserts that all of them end, without a further event.
async fn assert_ended(streams: Vec<EventStream>) {
    for stream in streams {
        let end = stream.ended().await;
        assert!(end.is_complete && end.events.is_empty(), "{end:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_token_is_revoked() {
    let fixture = SseFixture::start().await;
    let streams = fixture.streams(ALL).await;
    rows::revoke_token(&fixture.app.pool, &fixture.token, fixture.now()).await;
    assert_ended(streams).await;
    let answer = EventStream::refused(request(&fixture.app, &fixture.token, USER)).await;
    answer.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_token_is_deleted() {
    let fixture = SseFixture::start().await;
    let streams = fixture.streams(ALL).await;
    rows::delete_token(&fixture.app.pool, &fixture.token).await;
    assert_ended(streams).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_token_expires() {
    let fixture = SseFixture::start().await;
    rows::expire_token(&fixture.app.pool, &fixture.token, fixture.now() + SignedDuration::from_hours(24))
        .await;
    let streams = fixture.streams(ALL).await;
    fixture.app.advance_hours(25);
    assert_ended(streams).await;
    let answer = EventStream::refused(request(&fixture.app, &fixture.token, USER)).await;
    answer.assert_v1_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_at_an_expiry_set_while_it_is_open() {
    let fixture = SseFixture::start().await;
    let streams = fixture.streams(ALL).await;
    rows::expire_token(&fixture.app.pool, &fixture.token, fixture.now() + SignedDuration::from_hours(1))
        .await;
    // The roles know the expiry before the time moves.
    let mut other = fixture.streams(&[OF_SHARED]).await;
    super::assert_nothing_unread(&fixture.app, &mut other[0], "shared@inbox.localhost").await;
    fixture.app.advance_hours(2);
    for stream in streams.into_iter().chain(other) {
        assert!(stream.ended().await.is_complete);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_tenant_is_suspended() {
    let fixture = SseFixture::start().await;
    let streams = fixture.streams(ALL).await;
    rows::suspend_tenant(&fixture.app.pool, fixture.app.tenant.id).await;
    assert_ended(streams).await;
    let answer = EventStream::refused(request(&fixture.app, &fixture.token, USER)).await;
    answer.assert_v1_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_mailbox_is_deleted() {
    let fixture = SseFixture::start().await;
    let ending = fixture.streams(&[OF_BOX, "/v1/sse/addr?address=box%2Btag@inbox.localhost"]).await;
    let mut kept = fixture.streams(&[USER]).await;
    let deletion = fixture.app.request(Method::DELETE, "/api/me").bearer(&fixture.mailbox.jwt).send().await;
    assert_eq!(deletion.status, 204);
    assert_ended(ending).await;
    super::assert_nothing_unread(&fixture.app, &mut kept[0], "any@ours.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_the_domain_is_lost_or_deleted() {
    for deleted in [false, true] {
        let fixture = SseFixture::start().await;
        fixture.app.mailbox(Some(&fixture.app.tenant.pro), "box@ours.example").await;
        let ending = fixture.streams(&[OF_DOMAIN, "/v1/sse/addr?address=box@ours.example"]).await;
        let mut kept = fixture.streams(&[USER]).await;
        if deleted {
            let path = format!("/v1/domains/{}", fixture.domain);
            assert_eq!(fixture.app.delete(&path).await.status, 204);
        } else {
            fixture.app.end_verification(fixture.domain).await;
        }
        assert_ended(ending).await;
        super::assert_nothing_unread(&fixture.app, &mut kept[0], BOX).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_another_tenant_creates_the_mailbox() {
    let fixture = SseFixture::start().await;
    let other = fixture.app.another_tenant("lighthouse").await;
    let ending = fixture.streams(&[OF_SHARED, "/v1/sse/addr?address=shared%2Btag@inbox.localhost"]).await;
    fixture.app.mailbox(Some(&other.pro), "shared@inbox.localhost").await;
    fixture.app.deliver("shared@inbox.localhost", "theirs", "").await;
    fixture.app.deliver("shared+tag@inbox.localhost", "theirs", "").await;
    assert_ended(ending).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn continues_when_its_own_tenant_creates_the_mailbox() {
    let fixture = SseFixture::start().await;
    let mut streams = fixture.streams(&[OF_SHARED]).await;
    super::assert_nothing_unread(&fixture.app, &mut streams[0], "shared@inbox.localhost").await;
    fixture.app.mailbox(Some(&fixture.app.tenant.pro), "shared@inbox.localhost").await;
    super::assert_nothing_unread(&fixture.app, &mut streams[0], "shared@inbox.localhost").await;
    super::assert_nothing_unread(&fixture.app, &mut streams[0], "shared+tag@inbox.localhost").await;
}
