//! Places and rates are those of all processes together while Redis is there, and of each alone
//! while it is not.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::Request;
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{Answer, EventStream, Fleet, RedisServer, WebSocket};
use tokio::task::JoinHandle;

use super::stage::redis_is_well;

/// Nobody sends mail there.
const QUIET: &str = "/v1/inbox/quiet@inbox.localhost";
/// A mail is there: whoever may wait is answered at once.
const FULL: &str = "/v1/inbox/full@inbox.localhost";
/// Streams of events of one token.
const STREAMS: usize = 10;
/// WebSockets of one mailbox.
const SOCKETS: usize = 3;
/// Time within which the places of a process that was killed are free.
const FREED_WITHIN: Duration = Duration::from_secs(6);

/// Two processes that answer HTTP, over one Redis.
struct Pair {
    redis: RedisServer,
    fleet: Fleet,
}

impl Pair {
    async fn start() -> Self {
        let redis = RedisServer::new();
        let fleet = Fleet::builder().ingests(1).workers(0).redis(&redis.url()).start().await;
        redis_is_well(&fleet).await;
        fleet.deliver(0, "full@inbox.localhost", "there").await;
        Self { redis, fleet }
    }

    async fn live(&self) -> String {
        self.fleet.token(&self.fleet.tenant, TokenKind::Live).await
    }

    fn get(&self, api: usize, path: &str, token: &str) -> Request {
        self.fleet.request(api, Method::GET, path).live(token)
    }

    /// A wait that goes on, when it has its places; `others` wait at the process already.
    async fn wait(&self, api: usize, token: &str, others: usize) -> JoinHandle<reqwest::Result<Answer>> {
        let waiting = tokio::spawn(self.get(api, QUIET, token).try_send());
        eventually("a long-poll waits", || async {
            assert!(!waiting.is_finished(), "it has an answer");
            let waiters = self.fleet.api(api).metric("tempmail_subscribers").await;
            (waiters > others as f64).then_some(())
        })
        .await;
        waiting
    }

    fn stream(&self, api: usize, token: &str) -> Request {
        self.fleet.request(api, Method::GET, &format!("/v1/sse/user?token={token}"))
    }

    async fn streams(&self, api: usize, token: &str, count: usize) -> Vec<EventStream> {
        join_all((0..count).map(|_| EventStream::open(self.stream(api, token)))).await
    }

    async fn no_stream(&self, api: usize, token: &str) {
        EventStream::refused(self.stream(api, token)).await.is_v1_error(429, "token_busy");
    }

    async fn sockets(&self, api: usize, mailbox: &Mailbox, count: usize) -> Vec<WebSocket> {
        join_all((0..count).map(|_| WebSocket::authenticated(self.fleet.http(api), &mailbox.jwt))).await
    }

    async fn no_socket(&self, api: usize, mailbox: &Mailbox) {
        let mut socket = WebSocket::to(self.fleet.http(api)).connect().await;
        socket.auth(&mailbox.jwt).await;
        socket.is_refused("too_many_connections").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_waits_once_over_all_processes() {
    let pair = Pair::start().await;
    let token = pair.live().await;
    let waiting = pair.wait(0, &token, 0).await;
    for api in [0, 1] {
        pair.get(api, FULL, &token).send().await.is_v1_error(429, "token_busy");
    }
    pair.fleet.deliver(0, "quiet@inbox.localhost", "for the one that waits").await;
    waiting.await.unwrap().unwrap().expect(200);
    // The place is given back before the answer: it is free wherever the next request goes.
    for api in [1, 0, 1, 0, 1, 1, 0, 0].repeat(5) {
        pair.get(api, FULL, &token).send().await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_waits_ten_times_for_an_address_over_all_processes() {
    let pair = Pair::start().await;
    let mut waiting = Vec::new();
    for nth in 0..10 {
        let token = pair.live().await;
        waiting.push(pair.wait(nth % 2, &token, nth / 2).await);
    }
    let token = pair.live().await;
    for api in [0, 1] {
        pair.get(api, QUIET, &token).send().await.is_v1_error(429, "addr_busy");
        pair.get(api, FULL, &token).send().await.expect(200);
    }
    let stranger = pair.fleet.another_tenant("lagoon").await;
    waiting.push(pair.wait(0, &stranger.live, 5).await);
    pair.fleet.deliver(0, "quiet@inbox.localhost", "for all who wait").await;
    for waiting in waiting {
        waiting.await.unwrap().unwrap().expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_ten_streams_over_all_processes() {
    let pair = Pair::start().await;
    let token = pair.live().await;
    let (mut first, second) = (pair.streams(0, &token, 6).await, pair.streams(1, &token, 4).await);
    pair.no_stream(0, &token).await;
    pair.no_stream(1, &token).await;
    first.pop();
    eventually("the place of a stream that ended is free", || async {
        EventStream::try_open(pair.stream(1, &token)).await.unwrap().ok()
    })
    .await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_has_three_sockets_over_all_processes() {
    let pair = Pair::start().await;
    let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
    let mut first = pair.sockets(0, &mailbox, 2).await;
    let second = pair.sockets(1, &mailbox, 1).await;
    pair.no_socket(0, &mailbox).await;
    pair.no_socket(1, &mailbox).await;
    let mut leaving = first.pop().unwrap();
    leaving.close().await;
    assert!(matches!(leaving.next_frame().await, Frame::Close(..)));
    eventually("the place of a socket that ended is free", || socket(&pair, 1, &mailbox)).await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_of_a_token_is_that_of_all_processes_together() {
    const RATE: u32 = 10;
    let redis = RedisServer::new();
    let builder = Fleet::builder().ingests(1).workers(0).redis(&redis.url());
    let fleet = builder.config(|config| config.limits.v1_per_second = RATE).start().await;
    redis_is_well(&fleet).await;
    let begun = Instant::now();
    let asked = (0..120).map(|nth| {
        let request = fleet.request(nth % 2, Method::GET, "/v1/tokens");
        request.live(&fleet.tenant.live).send()
    });
    let answers = join_all(asked).await;
    let allowed = answers.iter().filter(|answer| answer.status == 200).count();
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.is_v1_error(429, "rate_limit_exceeded");
    }
    // What may be sent at once, and what came in since.
    let most = f64::from(RATE) * (1.0 + begun.elapsed().as_secs_f64()) + 1.0;
    assert!(allowed as f64 <= most, "{allowed} of at most {most}");
    assert!(allowed >= RATE as usize, "{allowed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sign_ins_are_those_of_all_processes_together() {
    let redis = RedisServer::new();
    let builder = Fleet::builder().ingests(1).workers(0).redis(&redis.url());
    let counted = |config: &mut tempmail_runtime::config::Config| {
        config.http.unlimited_networks.clear();
        config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    };
    let fleet = builder.config(counted).start().await;
    redis_is_well(&fleet).await;
    let mailbox = fleet.mailbox(None, "ship@inbox.localhost").await;
    let sign_in = |api: usize, password: &str| {
        let request = fleet.request(api, Method::POST, "/api/token").header("x-forwarded-for", "203.0.113.7");
        request.json(&json!({"address": mailbox.address, "password": password})).send()
    };
    for nth in 0..10 {
        sign_in(nth % 2, "wrong horse").await.is_api_error(401, "invalid_credentials");
    }
    for api in [0, 1] {
        sign_in(api, &mailbox.password).await.is_api_error(429, "rate_limit_exceeded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_places_of_a_process_that_was_killed_are_free_within_6_s() {
    let pair = Pair::start().await;
    let token = pair.live().await;
    let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
    let waiting = pair.wait(0, &token, 0).await;
    let streams = pair.streams(0, &token, STREAMS).await;
    let sockets = pair.sockets(0, &mailbox, SOCKETS).await;
    pair.get(1, FULL, &token).send().await.is_v1_error(429, "token_busy");
    pair.no_stream(1, &token).await;
    pair.no_socket(1, &mailbox).await;

    let killed = Instant::now();
    pair.fleet.api(0).kill().await;
    let waits = async {
        eventually("a wait has a place", || async {
            (pair.get(1, FULL, &token).send().await.status == 200).then_some(())
        })
        .await;
        killed.elapsed()
    };
    let is_streamed = async {
        eventually("a stream has a place", || async {
            EventStream::try_open(pair.stream(1, &token)).await.unwrap().ok()
        })
        .await;
        killed.elapsed()
    };
    let is_pushed = async {
        eventually("a socket has a place", || socket(&pair, 1, &mailbox)).await;
        killed.elapsed()
    };
    let (waits, is_streamed, is_pushed) = tokio::join!(waits, is_streamed, is_pushed);
    let all = [waits, is_streamed, is_pushed];
    assert!(all.iter().all(|after| *after <= FREED_WITHIN), "{all:?}");
    drop((waiting, streams, sockets));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_places_are_those_of_each_process_and_with_it_those_of_all_again() {
    let mut pair = Pair::start().await;
    let token = pair.live().await;
    let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
    let streams = pair.streams(0, &token, STREAMS).await;
    let sockets = pair.sockets(0, &mailbox, SOCKETS).await;

    pair.redis.stop();
    let more_streams = pair.streams(1, &token, STREAMS).await;
    let more_sockets = pair.sockets(1, &mailbox, SOCKETS).await;
    for api in [0, 1] {
        pair.no_stream(api, &token).await;
        pair.no_socket(api, &mailbox).await;
    }

    pair.redis.start();
    redis_is_well(&pair.fleet).await;
    // What is open stays open, and counts for everybody.
    drop((more_streams, more_sockets));
    eventually("no stream is left at the process", || async {
        (pair.fleet.api(1).metric("tempmail_subscribers").await == 0.0).then_some(())
    })
    .await;
    pair.no_stream(1, &token).await;
    pair.no_socket(1, &mailbox).await;
    drop((streams, sockets));
}

/// A socket that is authenticated, if there is a place for it.
async fn socket(pair: &Pair, api: usize, mailbox: &Mailbox) -> Option<WebSocket> {
    let mut socket = WebSocket::to(pair.fleet.http(api)).connect().await;
    socket.auth(&mailbox.jwt).await;
    let answer = socket.next_json().await;
    (answer == json!({"type": "auth_ok"})).then_some(socket)
}
