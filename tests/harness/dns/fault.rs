//! Ways in which a name server behaves badly.

use std::sync::Arc;

use tokio::sync::watch;

use crate::wait::within_deadline;

/// What a server does instead of answering rightly.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers `SERVFAIL`.
    ServFail,
    /// Answers `REFUSED`.
    Refused,
    /// Answers as if it were not responsible: without authority.
    Lame,
    /// Names other servers instead of answering.
    Referral {
        /// Whether it claims authority all the same, as broken servers do.
        authoritative: bool,
    },
    /// Over UDP has room for nothing.
    Truncated,
    /// Gives no answer.
    Silent,
    /// Takes connections and gives no answer there.
    SilentOverTcp,
    /// Over UDP says of every TXT question that these are the records.
    LiesOverUdp(Vec<String>),
    /// The same, and keeps its answers over TCP until they are released.
    LiesOverUdpWhileTcpIsHeld(Vec<String>, ReplyGate),
    /// Keeps its answers until they are released.
    Held(ReplyGate),
}

/// Keeps a server's answers back.
#[derive(Debug, Clone)]
pub struct ReplyGate {
    asked: Arc<watch::Sender<bool>>,
    released: Arc<watch::Sender<bool>>,
}

impl ReplyGate {
    pub(crate) fn new() -> Self {
        Self { asked: Arc::new(watch::Sender::new(false)), released: Arc::new(watch::Sender::new(false)) }
    }

    /// Waits until the server has a question.
    pub async fn query_received(&self) {
        let mut asked = self.asked.subscribe();
        within_deadline("the server is asked", asked.wait_for(|asked| *asked))
            .await
            .expect("the sender is here");
    }

    /// Lets the answers go, and all later ones.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    pub(crate) async fn wait(&self) {
        self.asked.send_replace(true);
        let _ = self.released.subscribe().wait_for(|released| *released).await;
    }
}
