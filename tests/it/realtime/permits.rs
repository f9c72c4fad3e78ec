//! Permits and rates count over all processes while Redis is connected, and per process while it is not.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Config;
use tempmail_tests::http::{Request, split_by_rate_limit};
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::websocket::Frame;
use tempmail_tests::{EventStream, Fleet, RedisServer, Response, WebSocket};
use tokio::task::JoinHandle;

use super::fixture::{redis_is_connected, redis_is_lost};
use crate::bus::{clients, lasts_with_connections};

/// An inbox without mail: a long-poll waits.
const QUIET: &str = "/v1/inbox/quiet@inbox.localhost";
/// An inbox with mail: a long-poll returns at once.
const FULL: &str = "/v1/inbox/full@inbox.localhost";
/// Event streams of a token.
const STREAMS: usize = 10;
/// WebSockets of a mailbox.
const SOCKETS: usize = 3;
/// Requests a second of a token, with [`limit_rate`].
const RATE: u32 = 2;
/// Connections to Redis: two of each process, of which one is an ingest process.
const CONNECTIONS: usize = 6;

/// Two API processes over one Redis.
struct ApiPair {
    redis: RedisServer,
    fleet: Fleet,
}

impl ApiPair {
    async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let redis = RedisServer::new();
        let builder = Fleet::builder().ingests(1).workers(0).redis(&redis.url());
        let fleet = builder.config(change).start().await;
        redis_is_connected(&fleet).await;
        fleet.deliver(0, "full@inbox.localhost", "there").await;
        Self { redis, fleet }
    }

    async fn live(&self) -> String {
        self.fleet.token(&self.fleet.tenant, TokenKind::Live).await
    }

    fn get(&self, api: usize, path: &str, token: &str) -> Request {
        self.fleet.request(api, Method::GET, path).live(token)
    }

    /// Starts a long-poll, and returns once it waits beside `others` at this process.
    async fn wait(&self, api: usize, token: &str, others: usize) -> JoinHandle<reqwest::Result<Response>> {
        let waiting = tokio::spawn(self.get(api, QUIET, token).try_send());
        eventually("a long-poll waits", || async {
            assert!(!waiting.is_finished(), "it returned at once");
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

    async fn assert_no_stream(&self, api: usize, token: &str) {
        EventStream::refused(self.stream(api, token)).await.assert_v1_error(429, "token_busy");
    }

    /// Waits until no stream of the token may be opened: a process that reconnects to Redis grants its own.
    async fn wait_until_no_stream(&self, api: usize, token: &str) {
        eventually("no stream is left", || async {
            let answer = EventStream::try_open(self.stream(api, token)).await.unwrap().err()?;
            answer.assert_v1_error(429, "token_busy");
            Some(())
        })
        .await;
    }

    async fn sockets(&self, api: usize, mailbox: &Mailbox, count: usize) -> Vec<WebSocket> {
        join_all((0..count).map(|_| WebSocket::authenticated(self.fleet.http(api), &mailbox.jwt))).await
    }

    async fn assert_no_socket(&self, api: usize, mailbox: &Mailbox) {
        let mut socket = WebSocket::to(self.fleet.http(api)).connect().await;
        socket.auth(&mailbox.jwt).await;
        socket.assert_refused("too_many_connections").await;
    }

    /// As [`Self::wait_until_no_stream`].
    async fn wait_until_no_socket(&self, api: usize, mailbox: &Mailbox) {
        eventually("no socket is left", || async {
            let mut socket = WebSocket::to(self.fleet.http(api)).connect().await;
            socket.auth(&mailbox.jwt).await;
            (socket.next_json().await == json!({"error": "too_many_connections"})).then_some(())
        })
        .await;
    }
}

/// Runs a scenario, and repeats it if it failed while a process reconnected to Redis: on a busy machine a command
/// may take longer than the 500 ms after which a process counts alone.
async fn without_reconnections(change: fn(&mut Config), scenario: impl AsyncFn(&ApiPair)) {
    loop {
        let pair = ApiPair::start_with(change).await;
        let connections = eventually("all processes have their connections", || async {
            Some(clients(&pair.redis)).filter(|connections| connections.len() == CONNECTIONS)
        })
        .await;
        redis_is_connected(&pair.fleet).await;
        if lasts_with_connections(&pair.redis, &connections, scenario(&pair)).await {
            return;
        }
    }
}

fn unchanged(_: &mut Config) {}

fn limit_rate(config: &mut Config) {
    config.limits.v1_per_second = RATE;
}

/// Limits clients of loopback by the address that they forward.
fn limit_clients(config: &mut Config) {
    config.http.unlimited_networks.clear();
    config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_token_to_one_long_poll_over_all_processes() {
    without_reconnections(unchanged, async |pair| {
        let token = pair.live().await;
        let waiting = pair.wait(0, &token, 0).await;
        for api in [0, 1] {
            pair.get(api, FULL, &token).send().await.assert_v1_error(429, "token_busy");
        }
        pair.fleet.deliver(0, "quiet@inbox.localhost", "for the waiting client").await;
        waiting.await.unwrap().unwrap().expect(200);
        // The permit is released before the response: it is free at every process.
        for api in [1, 0, 1, 0, 1, 1, 0, 0].repeat(5) {
            pair.get(api, FULL, &token).send().await.expect(200);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_tenant_to_ten_long_polls_per_address_over_all_processes() {
    without_reconnections(unchanged, async |pair| {
        let tokens = join_all((0..10).map(|_| pair.live())).await;
        // At once, since each ends after 25 s.
        let waits = tokens.iter().enumerate().map(|(nth, token)| pair.wait(nth % 2, token, 4));
        let mut waiting = join_all(waits).await;
        let token = pair.live().await;
        for api in [0, 1] {
            pair.get(api, QUIET, &token).send().await.assert_v1_error(429, "addr_busy");
            pair.get(api, FULL, &token).send().await.expect(200);
        }
        let stranger = pair.fleet.another_tenant("lagoon").await;
        waiting.push(pair.wait(0, &stranger.live, 5).await);
        pair.fleet.deliver(0, "quiet@inbox.localhost", "for all waiting clients").await;
        for waiting in waiting {
            waiting.await.unwrap().unwrap().expect(200);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_token_to_ten_streams_over_all_processes() {
    without_reconnections(unchanged, async |pair| {
        let token = pair.live().await;
        let (mut first, second) = (pair.streams(0, &token, 6).await, pair.streams(1, &token, 4).await);
        pair.assert_no_stream(0, &token).await;
        pair.assert_no_stream(1, &token).await;
        first.pop();
        eventually("the permit of a stream that ended is free", || async {
            EventStream::try_open(pair.stream(1, &token)).await.unwrap().ok()
        })
        .await;
        drop(second);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_mailbox_to_three_sockets_over_all_processes() {
    without_reconnections(unchanged, async |pair| {
        let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
        let mut first = pair.sockets(0, &mailbox, 2).await;
        let second = pair.sockets(1, &mailbox, 1).await;
        pair.assert_no_socket(0, &mailbox).await;
        pair.assert_no_socket(1, &mailbox).await;
        let mut leaving = first.pop().unwrap();
        leaving.close().await;
        assert!(matches!(leaving.next_frame().await, Frame::Close(..)));
        eventually("the permit of a socket that ended is free", || try_socket(pair, 1, &mailbox)).await;
        drop(second);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_rate_of_a_token_over_all_processes() {
    without_reconnections(limit_rate, async |pair| {
        let fleet = &pair.fleet;
        let started = Instant::now();
        let requests = (0..120).map(|nth| {
            let request = fleet.request(nth % 2, Method::GET, "/v1/tokens");
            request.live(&fleet.tenant.live).send()
        });
        let responses = join_all(requests).await;
        let (served, _) = split_by_rate_limit(&responses);
        // The burst, and what was refilled since.
        let most = f64::from(RATE) * (1.0 + started.elapsed().as_secs_f64()) + 1.0;
        assert!(served.len() as f64 <= most, "{} of at most {most}", served.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_failed_sign_ins_over_all_processes() {
    without_reconnections(limit_clients, async |pair| {
        let fleet = &pair.fleet;
        let mailbox = fleet.mailbox(None, "ship@inbox.localhost").await;
        let sign_in = |api: usize, password: &str| {
            let request =
                fleet.request(api, Method::POST, "/api/token").header("x-forwarded-for", "203.0.113.7");
            request.json(&json!({"address": mailbox.address, "password": password})).send()
        };
        for nth in 0..10 {
            sign_in(nth % 2, "wrong horse").await.assert_api_error(401, "invalid_credentials");
        }
        for api in [0, 1] {
            sign_in(api, &mailbox.password).await.assert_api_error(429, "rate_limit_exceeded");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_permits_of_a_killed_process() {
    times_to_free_permits_of_a_killed_process().await;
}

/// Kills a process that holds all permits of a token and a mailbox; returns when a long-poll, a stream and a socket
/// each got one at the other process, since the kill.
pub async fn times_to_free_permits_of_a_killed_process() -> [Duration; 3] {
    let pair = ApiPair::start().await;
    let token = pair.live().await;
    let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
    let streams = pair.streams(0, &token, STREAMS).await;
    let sockets = pair.sockets(0, &mailbox, SOCKETS).await;
    let waiting = pair.wait(0, &token, STREAMS + SOCKETS).await;
    eventually("no long-poll is left", || async {
        let answer = pair.get(1, FULL, &token).send().await;
        (answer.status == 429).then(|| answer.assert_v1_error(429, "token_busy"))
    })
    .await;
    pair.wait_until_no_stream(1, &token).await;
    pair.wait_until_no_socket(1, &mailbox).await;

    let killed = Instant::now();
    pair.fleet.api(0).kill().await;
    let long_poll = async {
        eventually("a long-poll has a permit", || async {
            (pair.get(1, FULL, &token).send().await.status == 200).then_some(())
        })
        .await;
        killed.elapsed()
    };
    let stream = async {
        eventually("a stream has a permit", || async {
            EventStream::try_open(pair.stream(1, &token)).await.unwrap().ok()
        })
        .await;
        killed.elapsed()
    };
    let socket = async {
        eventually("a socket has a permit", || try_socket(&pair, 1, &mailbox)).await;
        killed.elapsed()
    };
    let times = tokio::join!(long_poll, stream, socket);
    drop((waiting, streams, sockets));
    times.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_permits_per_process_while_redis_is_down() {
    let mut pair = ApiPair::start().await;
    let token = pair.live().await;
    let mailbox = pair.fleet.mailbox(None, "ship@inbox.localhost").await;
    let streams = pair.streams(0, &token, STREAMS).await;
    let sockets = pair.sockets(0, &mailbox, SOCKETS).await;

    pair.redis.stop();
    redis_is_lost(&pair.fleet).await;
    let more_streams = pair.streams(1, &token, STREAMS).await;
    let more_sockets = pair.sockets(1, &mailbox, SOCKETS).await;
    for api in [0, 1] {
        pair.assert_no_stream(api, &token).await;
        pair.assert_no_socket(api, &mailbox).await;
    }

    pair.redis.start();
    redis_is_connected(&pair.fleet).await;
    // What is open stays open, and counts for all processes.
    drop((more_streams, more_sockets));
    eventually("all clients of the process are gone", || async {
        (pair.fleet.api(1).metric("tempmail_subscribers").await == 0.0).then_some(())
    })
    .await;
    pair.wait_until_no_stream(1, &token).await;
    pair.wait_until_no_socket(1, &mailbox).await;
    drop((streams, sockets));
}

/// An authenticated socket, if there is a permit for it.
async fn try_socket(pair: &ApiPair, api: usize, mailbox: &Mailbox) -> Option<WebSocket> {
    let mut socket = WebSocket::to(pair.fleet.http(api)).connect().await;
    socket.auth(&mailbox.jwt).await;
    let answer = socket.next_json().await;
    (answer == json!({"type": "auth_ok"})).then_some(socket)
}
