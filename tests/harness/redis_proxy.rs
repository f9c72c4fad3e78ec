//! A proxy in front of Redis that injects the faults of a network and of a server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::silence::Silence;

/// Passes commands and replies on, but for the faults that a test sets.
#[derive(Debug)]
pub struct RedisProxy {
    port: u16,
    faults: watch::Sender<InjectedFaults>,
    counts: Arc<FaultCounts>,
}

/// The faults that a test has set.
#[derive(Debug, Clone, Copy, Default)]
struct InjectedFaults {
    disconnected: bool,
    keep_clients: bool,
    silence: Option<Silence>,
    /// Drop each n-th PUBLISH of at least so many bytes.
    drop_publishes: Option<(usize, usize)>,
    /// How often subscriptions were to be dropped.
    drop_subscriptions: usize,
    /// How often a reply was to be dropped.
    drop_replies: usize,
}

#[derive(Debug, Default)]
struct FaultCounts {
    matching_publishes: AtomicUsize,
    dropped_publishes: AtomicUsize,
    dropped_replies: AtomicUsize,
}

impl RedisProxy {
    /// A proxy on a free port of loopback, in front of the server on port `server`.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let faults = watch::Sender::new(InjectedFaults::default());
        let counts = Arc::<FaultCounts>::default();
        let (faults_of_all, counts_of_all) = (faults.clone(), counts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let faults = faults_of_all.subscribe();
                if !faults.borrow().disconnected {
                    tokio::spawn(pass(client, server, faults, counts_of_all.clone()));
                }
            }
        });
        Self { port, faults, counts }
    }

    /// The URL of Redis through the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Closes every connection and accepts no new one.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.disconnected = true);
    }

    /// Passes nothing on in these directions; connections stay open, and new ones are accepted.
    pub fn fall_silent(&self, silence: Silence) {
        self.faults.send_modify(|faults| faults.silence = Some(silence));
    }

    /// Accepts connections again, and passes on what they carry.
    pub fn restore(&self) {
        self.faults.send_modify(|faults| (faults.disconnected, faults.silence) = (false, None));
    }

    /// Whether clients stay connected while the server restarts: they are connected to the new one without
    /// notice, and it has no subscriptions.
    pub fn keep_clients_on_restart(&self, keep: bool) {
        self.faults.send_modify(|faults| faults.keep_clients = keep);
    }

    /// Drops the next reply on each connection for commands: a client that keeps the connection takes each
    /// reply for that to an earlier command.
    pub fn drop_replies(&self) {
        self.faults.send_modify(|faults| faults.drop_replies += 1);
    }

    /// The number of replies that were dropped.
    pub fn dropped_replies(&self) -> usize {
        self.counts.dropped_replies.load(Ordering::Relaxed)
    }

    /// Drops every subscription at the server; connections stay open.
    pub fn drop_subscriptions(&self) {
        self.faults.send_modify(|faults| faults.drop_subscriptions += 1);
    }

    /// Drops each `nth` PUBLISH of at least `bytes`, and replies as if there were no subscriber.
    pub fn drop_publishes(&self, nth: usize, bytes: usize) {
        self.faults.send_modify(|faults| faults.drop_publishes = Some((nth, bytes)));
    }

    /// Drops no more PUBLISHes.
    pub fn drop_no_publishes(&self) {
        self.faults.send_modify(|faults| faults.drop_publishes = None);
    }

    /// The number of PUBLISHes that were dropped.
    pub fn dropped_publishes(&self) -> usize {
        self.counts.dropped_publishes.load(Ordering::Relaxed)
    }
}

/// Serves a client, until it or the server ends.
async fn pass(
    mut client: TcpStream,
    server: u16,
    mut faults: watch::Receiver<InjectedFaults>,
    counts: Arc<FaultCounts>,
) {
    let Some(mut to) = dial(server, false).await else { return };
    let (mut commands, mut replies) = (Vec::new(), vec![0; 64 * 1024]);
    let mut subscribed = false;
    let InjectedFaults { mut drop_subscriptions, mut drop_replies, .. } = *faults.borrow();
    loop {
        let silence = faults.borrow().silence;
        tokio::select! {
            read = client.read_buf(&mut commands), if !silence.is_some_and(Silence::is_to_server) => {
                let Ok(1..) = read else { return };
                while let Some(end) = end_of_command(&commands) {
                    let mut command: Vec<u8> = commands.drain(..end).collect();
                    subscribed |= is_command(&command, "SUBSCRIBE");
                    if is_command(&command, "PUBLISH") && counts.drops(&command, *faults.borrow()) {
                        command = PUBLISH_WITHOUT_SUBSCRIBERS.to_vec();
                    }
                    // The next read fails too.
                    let _ = to.write_all(&command).await;
                }
            }
            read = to.read(&mut replies), if !silence.is_some_and(Silence::is_to_client) => {
                let count = read.unwrap_or(0);
                if count == 0 {
                    if !faults.borrow().keep_clients {
                        return;
                    }
                    let Some(again) = dial(server, true).await else { return };
                    to = again;
                } else if faults.borrow().drop_replies > drop_replies && !subscribed {
                    drop_replies = faults.borrow().drop_replies;
                    counts.dropped_replies.fetch_add(1, Ordering::Relaxed);
                } else if client.write_all(&replies[..count]).await.is_err() {
                    return;
                }
            }
            changed = faults.changed() => {
                let now = *faults.borrow_and_update();
                if changed.is_err() || now.disconnected {
                    return;
                }
                if now.drop_subscriptions != drop_subscriptions {
                    drop_subscriptions = now.drop_subscriptions;
                    if subscribed {
                        let Some(again) = dial(server, true).await else { return };
                        to = again;
                    }
                }
            }
        }
    }
}

/// A connection to the server; `retry` until it is available.
async fn dial(server: u16, retry: bool) -> Option<TcpStream> {
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await {
            Ok(connection) => return Some(connection),
            Err(_) if retry => sleep(Duration::from_millis(10)).await,
            Err(_) => return None,
        }
    }
}

impl FaultCounts {
    fn drops(&self, command: &[u8], faults: InjectedFaults) -> bool {
        let Some((nth, bytes)) = faults.drop_publishes else { return false };
        if command.len() < bytes {
            return false;
        }
        let dropped = (self.matching_publishes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(nth);
        self.dropped_publishes.fetch_add(usize::from(dropped), Ordering::Relaxed);
        dropped
    }
}

/// A PUBLISH without subscribers, whose reply takes the place of a dropped one's.
const PUBLISH_WITHOUT_SUBSCRIBERS: &[u8] = b"*3\r\n$7\r\nPUBLISH\r\n$6\r\nnobody\r\n$0\r\n\r\n";

/// Where the first command ends; `None` if it is_command incomplete.
///
/// # Panics
/// It is_command not an array of bulk strings.
fn end_of_command(bytes: &[u8]) -> Option<usize> {
    let (mut at, strings) = number(bytes, 0, b'*')?;
    for _ in 0..strings {
        let (string, length) = number(bytes, at, b'$')?;
        at = string + length + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// Whether a command has this name.
fn is_command(command: &[u8], name: &str) -> bool {
    let Some((string, length)) = number(command, 0, b'*').and_then(|(at, _)| number(command, at, b'$'))
    else {
        return false;
    };
    command[string..string + length].eq_ignore_ascii_case(name.as_bytes())
}

/// The number in the line at `at`, and where the next line begins.
fn number(bytes: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let length = line.windows(2).position(|end_of_command| end_of_command == b"\r\n")?;
    assert_eq!(line[0], kind, "clients write arrays of bulk strings");
    let number = std::str::from_utf8(&line[1..length]).ok().and_then(|text| text.parse().ok());
    Some((at + length + 2, number.expect("a number")))
}
