//! Thousands of connections at once: each is answered, memory is bounded, and followers beside them receive every
//! mail.

use std::net::{Ipv4Addr, SocketAddr};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Config;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Feed, Fleet, Follower, RedisServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::fixture::redis_is_connected;
use crate::descriptors::ManyConnections;

/// Connections of one client: its limit. One in ten is an unauthenticated WebSocket, which is their limit, too.
const PER_CLIENT: usize = 200;
/// Connections with one token: four in ten are event streams, of which it may have ten.
const PER_TOKEN: usize = 20;
/// Connections opened at a time; more would wait in the listener's queue.
const CONCURRENCY: usize = 2_000;
/// Most resident bytes per connection, in an unoptimized build.
const BYTES_PER_CONNECTION: u64 = 32 << 10;
/// The smallest crowd whose growth in memory is measured: below it, allocations of other causes dominate.
const MEASURED: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn serves_followers_beside_600_connections() {
    serves_followers_beside(600).await;
}

/// Opens so many connections (or as many as the system allows), and asserts that followers are served beside them.
pub async fn serves_followers_beside(connections: usize) {
    let many = ManyConnections::reserve(connections).await;
    let connections = many.connections;
    let redis = RedisServer::new();
    let builder = Fleet::builder().apis(1).ingests(1).workers(0).redis(&redis.url());
    let fleet = builder.config(limit_all_but_followers).start().await;
    redis_is_connected(&fleet).await;
    let api = fleet.api(0);
    let followers = followers(&fleet).await;
    deliver_until(&fleet, &followers, 1).await;

    let before = api.resident_bytes();
    let crowd = connect_crowd(&fleet, connections).await;
    let per_connection = api.resident_bytes().saturating_sub(before) / connections as u64;
    if connections >= MEASURED {
        assert!(per_connection <= BYTES_PER_CONNECTION, "{} KiB per connection", per_connection >> 10);
    }

    // One connection more than the client may have.
    let mut surplus = connect(api.listen(), 0).await;
    assert_eq!(within_deadline("it is closed", surplus.read(&mut [0])).await.unwrap_or(0), 0);

    deliver_until(&fleet, &followers, 20).await;
    for follower in &followers {
        assert_eq!(follower.duplicates(), 0);
    }
    // The process drains with all of them connected, and completes every stream.
    let streams = crowd.into_iter().filter(|member| member.kind == ConnectionKind::Stream);
    let ends = join_all(streams.map(|member| assert_completed(member.stream)));
    let (ended, _) = tokio::join!(api.terminate(), ends);
    assert!(ended.status.success(), "{ended:?}");
    api.restart().await;
    deliver_until(&fleet, &followers, 21).await;
}

/// The crowd connects from other loopback addresses than the followers, and is limited. On a busy machine, a
/// client may send its request late.
fn limit_all_but_followers(config: &mut Config) {
    config.http.header_seconds = 60;
    config.http.unlimited_networks = vec!["127.0.0.1/32".parse().unwrap()];
}

async fn followers(fleet: &Fleet) -> [Follower; 3] {
    let mailbox = fleet.mailbox(None, "ship@inbox.localhost").await;
    let followers = [
        fleet.follow(0, &fleet.tenant.live, Feed::Inbox("quay@inbox.localhost".to_owned())),
        fleet.follow(0, &fleet.tenant.live, Feed::SseAddress("quay@inbox.localhost".to_owned())),
        fleet.follow(0, &mailbox.jwt, Feed::WebSocket),
    ];
    for follower in &followers {
        follower.ready().await;
    }
    followers
}

/// A connection of the crowd.
struct Connection {
    kind: ConnectionKind,
    stream: TcpStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionKind {
    /// A WebSocket that sends nothing.
    Socket,
    /// An event stream.
    Stream,
    /// A connection that got its response and stays open.
    Idle,
    /// A connection that never sends a request.
    Silent,
}

async fn connect_crowd(fleet: &Fleet, connections: usize) -> Vec<Connection> {
    let server = fleet.http(0);
    let mut tokens = Vec::new();
    for _ in 0..connections.div_ceil(PER_TOKEN) {
        tokens.push(fleet.token(&fleet.tenant, TokenKind::Live).await);
    }
    let opened = stream::iter(0..connections).map(|nth| open(server, nth, &tokens[nth / PER_TOKEN]));
    opened.buffer_unordered(CONCURRENCY).collect().await
}

/// Opens the `nth` connection and sends the request of its kind.
async fn open(server: SocketAddr, nth: usize, token: &str) -> Connection {
    let mut stream = connect(server, nth / PER_CLIENT).await;
    let (request, expected, kind) = match nth % 10 {
        0 => (
            "GET /api/ws HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                .to_owned(),
            101,
            ConnectionKind::Socket,
        ),
        1..=4 => (format!("GET /v1/sse/user?token={token} HTTP/1.1\r\n"), 200, ConnectionKind::Stream),
        5..=8 => ("GET /v1/me HTTP/1.1\r\n".to_owned(), 401, ConnectionKind::Idle),
        _ => return Connection { kind: ConnectionKind::Silent, stream },
    };
    stream.write_all(format!("{request}host: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let head = within_deadline("a response", read_head(&mut stream)).await;
    // On a busy machine, looking up so many tokens may take longer than the 5 s of a request.
    if kind == ConnectionKind::Stream && head.starts_with("HTTP/1.1 503 ") {
        assert!(head.contains("\r\nretry-after: "), "a 503 says when to retry: {head}");
        return Connection { kind: ConnectionKind::Idle, stream };
    }
    assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{request}{head}");
    Connection { kind, stream }
}

/// The head of a response, and what came with it.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::with_capacity(1024);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "a response broke off");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads an event stream up to its last chunk (RFC 9112 7.1).
async fn assert_completed(mut stream: TcpStream) {
    let mut bytes = Vec::new();
    within_deadline("the end of a stream", stream.read_to_end(&mut bytes)).await.unwrap();
    // What came before may have come with the head.
    let is_complete = bytes == b"0\r\n\r\n" || bytes.ends_with(b"\r\n0\r\n\r\n");
    assert!(is_complete, "a stream broke: {}", String::from_utf8_lossy(&bytes));
}

/// Connects from the loopback address of a client.
async fn connect(server: SocketAddr, client: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let (high, low) = (client / 250, client % 250);
    let address = Ipv4Addr::new(127, 1, u8::try_from(high).unwrap(), u8::try_from(low + 1).unwrap());
    socket.bind((address, 0).into()).unwrap();
    within_deadline("a connection", socket.connect(server)).await.unwrap()
}

/// Delivers mail until each follower was sent `count`, and waits until it received them.
async fn deliver_until(fleet: &Fleet, followers: &[Follower], count: usize) {
    let sent = followers[0].received().len();
    for nth in sent..count {
        for address in ["quay@inbox.localhost", "ship@inbox.localhost"] {
            fleet.deliver(0, address, &format!("{nth}")).await;
        }
    }
    for follower in followers {
        follower.wait_for(count).await;
    }
}
