//! Faults of a name server.

use std::sync::Arc;

use tokio::sync::watch;

use crate::wait::within_deadline;

/// What a server does instead of replying correctly.
#[derive(Debug, Clone)]
pub enum NameServerFault {
    /// Replies `SERVFAIL`.
    ServFail,
    /// Replies `REFUSED`.
    Refused,
    /// Replies without authority, like a lame delegation.
    Lame,
    /// Replies with a referral to other servers.
    Referral {
        /// Whether the reply is authoritative, as that of broken servers.
        authoritative: bool,
    },
    /// Truncates every UDP reply.
    Truncated,
    /// Does not reply.
    Silent,
    /// Accepts TCP connections and does not reply over them.
    SilentOverTcp,
    /// Replies to every TXT query over UDP with these records.
    SpoofedUdp(Vec<String>),
    /// The same, and holds its replies over TCP until they are released.
    SpoofedUdpWithHeldTcp(Vec<String>, ReplyGate),
    /// Holds its replies until they are released.
    Held(ReplyGate),
}

/// Holds the replies of a server until they are released.
#[derive(Debug, Clone)]
pub struct ReplyGate {
    queried: Arc<watch::Sender<bool>>,
    released: Arc<watch::Sender<bool>>,
}

impl ReplyGate {
    pub(crate) fn new() -> Self {
        Self { queried: Arc::new(watch::Sender::new(false)), released: Arc::new(watch::Sender::new(false)) }
    }

    /// Waits until the server has received a query.
    pub async fn query_received(&self) {
        let mut queried = self.queried.subscribe();
        within_deadline("the server receives a query", queried.wait_for(|queried| *queried))
            .await
            .expect("the sender is here");
    }

    /// Releases the held replies, and all later ones.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    pub(crate) async fn wait(&self) {
        self.queried.send_replace(true);
        let _ = self.released.subscribe().wait_for(|released| *released).await;
    }
}
