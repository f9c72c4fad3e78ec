//! A proxy before Redis that spoils what a network and a server can spoil.

mod command;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Passes commands and answers on, unless it was told otherwise.
#[derive(Debug)]
pub struct RedisProxy {
    port: u16,
    mood: watch::Sender<Mood>,
    counts: Arc<Counts>,
}

/// What a proxy was told.
#[derive(Debug, Clone, Copy, Default)]
struct Mood {
    away: bool,
    keeps: bool,
    /// Each n-th PUBLISH of as many octets is lost.
    loses: Option<(usize, usize)>,
    /// How often subscriptions were to be forgotten.
    forgot: usize,
    /// How often an answer was to be lost.
    unanswered: usize,
}

#[derive(Debug, Default)]
struct Counts {
    seen: AtomicUsize,
    lost: AtomicUsize,
    dropped_replies: AtomicUsize,
}

impl RedisProxy {
    /// A proxy on a free port of loopback, before the server on port `server`.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let mood = watch::Sender::new(Mood::default());
        let counts = Arc::<Counts>::default();
        let (told, of_all) = (mood.clone(), counts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mood = told.subscribe();
                if !mood.borrow().away {
                    tokio::spawn(pass(client, server, mood, of_all.clone()));
                }
            }
        });
        Self { port, mood, counts }
    }

    /// Redis' URL through it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Cuts every connection and takes no new one.
    pub fn cut(&self) {
        self.mood.send_modify(|mood| mood.away = true);
    }

    /// Passes connections on again.
    pub fn restore(&self) {
        self.mood.send_modify(|mood| mood.away = false);
    }

    /// Whether clients keep their connection while the server restarts: then they are connected
    /// to the new one without a word, and it knows of no subscription.
    pub fn keep_clients_on_restart(&self, keeps: bool) {
        self.mood.send_modify(|mood| mood.keeps = keeps);
    }

    /// Loses what the server answers next on each connection for commands: a client that goes on
    /// with it takes each answer for that to an earlier command.
    pub fn drop_replies(&self) {
        self.mood.send_modify(|mood| mood.unanswered += 1);
    }

    /// How many answers were lost.
    pub fn dropped_replies(&self) -> usize {
        self.counts.dropped_replies.load(Ordering::Relaxed)
    }

    /// Lets the server forget every subscription made so far; all connections live on.
    pub fn drop_subscriptions(&self) {
        self.mood.send_modify(|mood| mood.forgot += 1);
    }

    /// Loses each `nth` PUBLISH of at least `octets`, which is answered as if nobody had heard it.
    pub fn drop_publishes(&self, nth: usize, octets: usize) {
        self.mood.send_modify(|mood| mood.loses = Some((nth, octets)));
    }

    /// Loses none any more.
    pub fn drop_no_publishes(&self) {
        self.mood.send_modify(|mood| mood.loses = None);
    }

    /// How many PUBLISHes were lost.
    pub fn dropped_publishes(&self) -> usize {
        self.counts.lost.load(Ordering::Relaxed)
    }
}

/// One client, until it or the server ends.
async fn pass(mut client: TcpStream, server: u16, mut mood: watch::Receiver<Mood>, counts: Arc<Counts>) {
    let Some(mut to) = dial(server, false).await else { return };
    let (mut commands, mut answers) = (Vec::new(), vec![0; 64 * 1024]);
    let mut subscribed = false;
    let Mood { mut forgot, mut unanswered, .. } = *mood.borrow();
    loop {
        tokio::select! {
            read = client.read_buf(&mut commands) => {
                let Ok(1..) = read else { return };
                while let Some(end) = command::end(&commands) {
                    let mut command: Vec<u8> = commands.drain(..end).collect();
                    subscribed |= command::is(&command, "SUBSCRIBE");
                    if command::is(&command, "PUBLISH") && counts.loses(&command, *mood.borrow()) {
                        command = command::PUBLISH_TO_NOBODY.to_vec();
                    }
                    // One that fails is met again where answers are read.
                    let _ = to.write_all(&command).await;
                }
            }
            read = to.read(&mut answers) => {
                let count = read.unwrap_or(0);
                if count == 0 {
                    if !mood.borrow().keeps {
                        return;
                    }
                    let Some(again) = dial(server, true).await else { return };
                    to = again;
                } else if mood.borrow().unanswered > unanswered && !subscribed {
                    unanswered = mood.borrow().unanswered;
                    counts.dropped_replies.fetch_add(1, Ordering::Relaxed);
                } else if client.write_all(&answers[..count]).await.is_err() {
                    return;
                }
            }
            changed = mood.changed() => {
                let Mood { away, forgot: told, .. } = *mood.borrow_and_update();
                if changed.is_err() || away {
                    return;
                }
                if told != forgot {
                    forgot = told;
                    if subscribed {
                        let Some(again) = dial(server, true).await else { return };
                        to = again;
                    }
                }
            }
        }
    }
}

/// A connection to the server; `patiently` also where it is away now.
async fn dial(server: u16, patiently: bool) -> Option<TcpStream> {
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await {
            Ok(connection) => return Some(connection),
            Err(_) if patiently => sleep(Duration::from_millis(10)).await,
            Err(_) => return None,
        }
    }
}

impl Counts {
    fn loses(&self, command: &[u8], mood: Mood) -> bool {
        let Some((nth, octets)) = mood.loses else { return false };
        if command.len() < octets {
            return false;
        }
        let lost = (self.seen.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(nth);
        self.lost.fetch_add(usize::from(lost), Ordering::Relaxed);
        lost
    }
}
