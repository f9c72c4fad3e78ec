//! As many connections at once as there are to be had: each gets a clear answer, memory is
//! bounded, and whoever follows meets every mail.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Fleet, Follower, RedisServer, Way};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::stage::redis_is_well;
use crate::descriptors::ManyConnections;

/// Connections, where the limit of file descriptors allows them.
const CONNECTIONS: usize = 15_000;
/// Connections of one client: as many as it may have. One in ten is a WebSocket that does not
/// authenticate, as many as it may have of those.
const OF_CLIENT: usize = 200;
/// Connections of one token: four in ten are streams of events, of which it may have ten.
const OF_TOKEN: usize = 20;
/// How many are being made at a time; more would wait in the queue of the listener.
const AT_ONCE: usize = 2_000;
/// Longest that the process may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(25);
/// Resident octets that each may cost the process, in a build that is not optimized.
const OCTETS_EACH: u64 = 32 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn connections_by_the_thousand_are_answered_and_harm_nobody() {
    let many = ManyConnections::reserve(CONNECTIONS).await;
    let connections = many.connections;
    let redis = RedisServer::new();
    let builder = Fleet::builder().apis(1).ingests(1).workers(0).redis(&redis.url());
    // They come from other addresses of loopback than those who follow.
    let limited = |config: &mut tempmail_runtime::config::Config| {
        config.http.unlimited_networks = vec!["127.0.0.1/32".parse().unwrap()];
    };
    let fleet = builder.config(limited).start().await;
    redis_is_well(&fleet).await;
    let api = fleet.api(0);
    let mailbox = fleet.mailbox(None, "ship@inbox.localhost").await;
    let followers = [
        fleet.follow(0, &fleet.tenant.live, Way::Inbox("quay@inbox.localhost".to_owned())),
        fleet.follow(0, &fleet.tenant.live, Way::SseAddress("quay@inbox.localhost".to_owned())),
        fleet.follow(0, &mailbox.jwt, Way::WebSocket),
    ];
    for follower in &followers {
        follower.ready().await;
    }
    meet(&fleet, &followers, 1).await;

    let before = api.resident_bytes();
    let mut tokens = Vec::new();
    for _ in 0..connections.div_ceil(OF_TOKEN) {
        tokens.push(fleet.token(&fleet.tenant, TokenKind::Live).await);
    }
    let opened = stream::iter(0..connections).map(|nth| open(api.listen(), nth, &tokens[nth / OF_TOKEN]));
    let held: Vec<Held> = opened.buffer_unordered(AT_ONCE).collect().await;
    let growth = api.resident_bytes().saturating_sub(before);
    assert!(
        growth <= OCTETS_EACH * connections as u64,
        "{} KiB a connection",
        (growth >> 10) / connections as u64
    );

    // One client too many connections, and one too many that are not authenticated.
    let mut surplus = connect(api.listen(), 0).await;
    assert_eq!(within_deadline("it is closed", surplus.read(&mut [0])).await.unwrap_or(0), 0);

    meet(&fleet, &followers, 20).await;
    for follower in &followers {
        assert_eq!(follower.duplicates(), 0);
    }
    // With all of them there it is told to stop: no stream is broken off.
    let streams = held.into_iter().filter(|held| held.kind == Kind::Stream);
    let ends = join_all(streams.map(|held| is_ended(held.stream)));
    let (ended, _) = tokio::join!(api.terminate(), ends);
    assert!(ended.status.success() && ended.took <= ENDS_WITHIN, "{ended:?}");
    api.restart().await;
    meet(&fleet, &followers, 21).await;
}

/// A connection of the crowd.
struct Held {
    kind: Kind,
    stream: TcpStream,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A WebSocket that says nothing.
    Socket,
    /// A stream of events.
    Stream,
    /// It was answered, and is kept.
    Answered,
    /// It asks nothing.
    Silent,
}

/// Makes a connection, and asks for what its number says.
async fn open(server: SocketAddr, nth: usize, token: &str) -> Held {
    let mut stream = connect(server, nth / OF_CLIENT).await;
    let (request, expected, kind) = match nth % 10 {
        0 => (
            "GET /api/ws HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                .to_owned(),
            101,
            Kind::Socket,
        ),
        1..=4 => (format!("GET /v1/sse/user?token={token} HTTP/1.1\r\n"), 200, Kind::Stream),
        5..=8 => ("GET /v1/me HTTP/1.1\r\n".to_owned(), 401, Kind::Answered),
        _ => return Held { kind: Kind::Silent, stream },
    };
    stream.write_all(format!("{request}host: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let head = within_deadline("an answer", read_head(&mut stream)).await;
    // A machine that is busy with other tests may not look up that many tokens in 5 s.
    if kind == Kind::Stream && head.starts_with("HTTP/1.1 503 ") {
        assert!(
            head.contains("\r\nretry-after: "),
            "whoever is turned away is told when to come back: {head}"
        );
        return Held { kind: Kind::Answered, stream };
    }
    assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{request}{head}");
    Held { kind, stream }
}

/// The head of an answer, and what came with it.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut octets = Vec::with_capacity(1024);
    while !octets.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut octets).await.unwrap() > 0, "an answer broke off");
    }
    String::from_utf8_lossy(&octets).into_owned()
}

/// Reads a stream of events, to its last chunk (RFC 9112 7.1).
async fn is_ended(mut stream: TcpStream) {
    let mut octets = Vec::new();
    within_deadline("the end of a stream", stream.read_to_end(&mut octets)).await.unwrap();
    // What came before may all have come with the head.
    let is_whole = octets == b"0\r\n\r\n" || octets.ends_with(b"\r\n0\r\n\r\n");
    assert!(is_whole, "a stream broke: {}", String::from_utf8_lossy(&octets));
}

/// Connects from the loopback address of a client.
async fn connect(server: SocketAddr, client: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let (high, low) = (client / 250, client % 250);
    let address = Ipv4Addr::new(127, 1, u8::try_from(high).unwrap(), u8::try_from(low + 1).unwrap());
    socket.bind((address, 0).into()).unwrap();
    within_deadline("a connection", socket.connect(server)).await.unwrap()
}

/// Delivers mail until each of those who follow has been sent `count`, and waits until it has met
/// them.
async fn meet(fleet: &Fleet, followers: &[Follower], count: usize) {
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
