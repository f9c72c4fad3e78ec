//! Looks whether what is published comes back: a connection can be well while the server has
//! forgotten its subscription, and then nobody would say so.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::away::Away;
use super::commands::Commands;
use super::message;
use super::publisher::publish;

/// Time between two probes.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest that a probe may take to come back.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// Probes of one pair of connections.
pub(super) struct Probe<'a> {
    pub(super) commands: &'a Commands,
    pub(super) channel: &'a str,
    pub(super) sender: Uuid,
    /// The last probe that came back.
    pub(super) seen: watch::Receiver<u64>,
}

impl Probe<'_> {
    /// Sends a probe and waits until it comes back.
    pub(super) async fn once(&mut self, number: u64) -> Result<(), Away> {
        let octets = message::of_probe(self.sender, number);
        self.commands.send_one(publish(self.channel, &octets)).await?;
        match timeout(BACK_WITHIN, self.seen.wait_for(|&seen| seen >= number)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Away::because("what is published does not come back")),
        }
    }

    /// Goes on to probe after the first, until one does not come back.
    pub(super) async fn repeat(&mut self) -> Away {
        let mut number = 1;
        loop {
            sleep(PERIOD).await;
            number += 1;
            if let Err(away) = self.once(number).await {
                return away;
            }
        }
    }
}
