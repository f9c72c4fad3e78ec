//! One who waits: a connection that is kept, a long-poll, a stream or a WebSocket, again and
//! again, each time from where it stood.

mod long_poll;
mod stream;
mod web_socket;
mod wire;

use std::convert::Infallible;
use std::time::Duration;
use std::{fmt, io};

use rand::RngExt as _;

use super::crowd::Shared;
pub use web_socket::Greeting;
use wire::{Head, Wire};

/// How one waits.
#[derive(Debug, Clone)]
pub enum Way {
    /// A connection that has asked once for `target`, and asks nothing more.
    Kept {
        /// Path.
        target: String,
    },
    /// A long-poll, and the next one after its answer.
    LongPoll {
        /// Path, without a query.
        target: String,
        /// A `tm_live_` token.
        token: String,
    },
    /// Server-sent events.
    Stream {
        /// Path and query.
        target: String,
    },
    /// A WebSocket.
    WebSocket(Greeting),
}

/// One waiter.
#[derive(Debug)]
pub struct Client {
    /// Its number among all waiters.
    pub number: u32,
    /// How it waits.
    pub way: Way,
}

/// Why a wait ended that should have gone on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Nobody listens.
    NotConnected,
    /// The server closed the connection, or it broke.
    Closed,
    /// The server said goodbye in a close frame.
    Goodbye(u16),
    /// The server answered with another status.
    Status(u16),
    /// The server refused a WebSocket after its upgrade, or sent something that this client does
    /// not read.
    Malformed,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::Closed => f.write_str("closed"),
            Self::Goodbye(code) => write!(f, "closed with {code}"),
            Self::Status(status) => write!(f, "answered {status}"),
            Self::Malformed => f.write_str("not understood"),
        }
    }
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl Client {
    /// Waits for ever; where a wait ends, begins again after a moment.
    pub async fn run(self, shared: &Shared) {
        let mut place = Place::default();
        loop {
            let followed: Result<Infallible, Ended> = match &self.way {
                Way::Kept { target } => self.keep(shared, target, &mut place).await,
                Way::LongPoll { target, token } => {
                    long_poll::follow(&self, shared, target, token, &mut place).await
                }
                Way::Stream { target } => stream::follow(&self, shared, target, &mut place).await,
                Way::WebSocket(greeting) => web_socket::follow(&self, shared, greeting, &mut place).await,
            };
            let Err(ended) = followed;
            shared.ended(place.is_open, ended);
            place.is_open = false;
            let pause = rand::rng().random_range(50..150);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn keep(&self, shared: &Shared, target: &str, place: &mut Place) -> Result<Infallible, Ended> {
        let mut wire = Wire::connect(shared.server, self.number).await?;
        wire.send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", shared.server).as_bytes()).await?;
        let head = wire.head().await?;
        if head.status != 200 {
            return Err(Ended::Status(head.status));
        }
        wire.octets(content_length(&head)?).await?;
        place.open(shared);
        wire.octets(1).await?;
        Err(Ended::Malformed)
    }
}

/// Where a waiter stands.
#[derive(Debug, Default)]
struct Place {
    /// Cursor or event id to go on from.
    since: Option<String>,
    /// Whether it is waiting now.
    is_open: bool,
    /// Whether it was waiting before.
    was_open: bool,
}

impl Place {
    /// It waits from now on.
    fn open(&mut self, shared: &Shared) {
        if !self.is_open {
            shared.opened();
        }
        (self.is_open, self.was_open) = (true, true);
    }
}

fn content_length(head: &Head) -> Result<usize, Ended> {
    head.field("content-length").and_then(|text| text.parse().ok()).ok_or(Ended::Malformed)
}
