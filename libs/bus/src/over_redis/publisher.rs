//! Tells the other processes of arrivals, as long as Redis is well.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use redis::{Cmd, cmd};
use tempmail_model::message::Arrival;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::away::Away;
use super::commands::Commands;
use super::message::{self, ARRIVALS_MAX};

/// Batches that may wait to be sent; what comes beyond them is lost.
const WAITING: usize = 1024;
/// Batches that are sent together.
const TOGETHER: usize = 64;

/// Where a process leaves its arrivals.
pub(super) type Outbox = mpsc::Sender<Arc<[Arrival]>>;

/// Sends what is in the outbox.
#[derive(Debug)]
pub(super) struct Publisher {
    outbox: mpsc::Receiver<Arc<[Arrival]>>,
    channel: String,
    sender: Uuid,
}

impl Publisher {
    pub(super) fn new(channel: String, sender: Uuid) -> (Outbox, Self) {
        let (outbox, waiting) = mpsc::channel(WAITING);
        (outbox, Self { outbox: waiting, channel, sender })
    }

    /// Loses everything, since Redis is away; never ends.
    pub(super) async fn lose(&mut self) -> Infallible {
        while let Some(arrivals) = self.outbox.recv().await {
            count_lost(arrivals.len());
        }
        pending().await
    }

    /// Sends until Redis is away.
    pub(super) async fn send(&mut self, commands: &Commands) -> Away {
        let mut batches = Vec::with_capacity(TOGETHER);
        while self.outbox.recv_many(&mut batches, TOGETHER).await > 0 {
            if let Err(away) = self.send_some(commands, &mut batches).await {
                return away;
            }
        }
        pending().await
    }

    /// Sends what is there now.
    pub(super) async fn flush(&mut self, commands: &Commands) -> Result<(), Away> {
        let mut batches: Vec<_> = std::iter::from_fn(|| self.outbox.try_recv().ok()).collect();
        self.send_some(commands, &mut batches).await
    }

    async fn send_some(&self, commands: &Commands, batches: &mut Vec<Arc<[Arrival]>>) -> Result<(), Away> {
        let arrivals = batches.concat();
        batches.clear();
        let messages = arrivals.chunks(ARRIVALS_MAX).map(|some| message::of_arrivals(self.sender, some));
        let publish: Vec<Cmd> = messages.map(|octets| publish(&self.channel, &octets)).collect();
        commands.send(&publish).await.map(drop).inspect_err(|_| count_lost(arrivals.len()))
    }
}

/// The command that sends a message.
pub(super) fn publish(channel: &str, octets: &[u8]) -> Cmd {
    let mut command = cmd("PUBLISH");
    command.arg(channel).arg(octets);
    command
}

/// Counts arrivals of which the others were not told.
pub(super) fn count_lost(arrivals: usize) {
    metrics::counter!("tempmail_bus_lost_hints_total").increment(arrivals as u64);
}
