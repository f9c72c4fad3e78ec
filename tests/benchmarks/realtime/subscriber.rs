//! One subscriber: a kept connection, a long-poll, a stream or a WebSocket, which reconnects and resumes
//! where it was.

mod connection;
mod long_poll;
mod stream;
mod web_socket;

use std::convert::Infallible;
use std::time::Duration;
use std::{fmt, io};

use tempmail_model::chance;

use super::pool::PoolState;
use connection::{Head, HttpConnection};
pub use web_socket::WebSocketProtocol;

/// How one waits.
#[derive(Debug, Clone)]
pub enum Subscription {
    /// A connection that requested `target` once, and is idle from then on.
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
    WebSocket(WebSocketProtocol),
}

/// One subscriber.
#[derive(Debug)]
pub struct Subscriber {
    /// Its number among all subscribers.
    pub number: u32,
    /// How it waits.
    pub subscription: Subscription,
}

/// Why a wait ended unexpectedly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disconnect {
    /// Nothing listens.
    NotConnected,
    /// The server closed the connection, or it broke.
    Closed,
    /// The server said goodbye in a close frame.
    CloseFrame(u16),
    /// The server answered with another status.
    Status(u16),
    /// The server refused a WebSocket after its upgrade, or sent something that this client does
    /// not read.
    Malformed,
}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::Closed => f.write_str("closed"),
            Self::CloseFrame(code) => write!(f, "closed with {code}"),
            Self::Status(status) => write!(f, "answered {status}"),
            Self::Malformed => f.write_str("not understood"),
        }
    }
}

impl From<io::Error> for Disconnect {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl Subscriber {
    /// Waits for ever; where a wait ends, begins again after a moment.
    pub async fn run(self, shared: &PoolState) {
        let mut state = SubscriptionState::default();
        loop {
            let followed: Result<Infallible, Disconnect> = match &self.subscription {
                Subscription::Kept { target } => self.keep(shared, target, &mut state).await,
                Subscription::LongPoll { target, token } => {
                    long_poll::follow(&self, shared, target, token, &mut state).await
                }
                Subscription::Stream { target } => stream::follow(&self, shared, target, &mut state).await,
                Subscription::WebSocket(protocol) => {
                    web_socket::follow(&self, shared, protocol, &mut state).await
                }
            };
            let Err(disconnected) = followed;
            shared.disconnected(state.is_open, disconnected);
            state.is_open = false;
            tokio::time::sleep(Duration::from_millis(100).mul_f64(chance::factor(0.5..=1.5))).await;
        }
    }

    async fn keep(
        &self,
        shared: &PoolState,
        target: &str,
        state: &mut SubscriptionState,
    ) -> Result<Infallible, Disconnect> {
        let mut connection = HttpConnection::connect(shared.server, self.number).await?;
        connection
            .send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", shared.server).as_bytes())
            .await?;
        let head = connection.head().await?;
        if head.status != 200 {
            return Err(Disconnect::Status(head.status));
        }
        connection.octets(content_length(&head)?).await?;
        state.open(shared);
        connection.octets(1).await?;
        Err(Disconnect::Malformed)
    }
}

/// Where a subscriber stands.
#[derive(Debug, Default)]
struct SubscriptionState {
    /// Cursor or event id to go on from.
    since: Option<String>,
    /// Whether it is waiting now.
    is_open: bool,
    /// Whether it was waiting before.
    was_open: bool,
}

impl SubscriptionState {
    /// It waits from now on.
    fn open(&mut self, shared: &PoolState) {
        if !self.is_open {
            shared.opened();
        }
        (self.is_open, self.was_open) = (true, true);
    }
}

fn content_length(head: &Head) -> Result<usize, Disconnect> {
    head.field("content-length").and_then(|text| text.parse().ok()).ok_or(Disconnect::Malformed)
}
