//! Final delivery: every session hands its mail to the one batcher of the process, which
//! commits what is waiting in one statement. The next batch is what came while the last one
//! committed, and, for at most a millisecond, what is just coming in. A session hears its
//! verdict after the commit.

mod batcher;
mod large;
mod prepare;
mod shared_inbox;
mod under_way;

use std::net::IpAddr;
use std::sync::Arc;

use tempmail_bus::SharedBus;
use tempmail_model::address::{RecipientAddress, ReservedLocalParts};
use tempmail_model::clock::Clock;
pub use tempmail_model::trace::Protocol;
use tempmail_runtime::config::Config;
use tempmail_store::{DeliveryLimits, NewMail, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::batcher::{Batcher, Waiting};
use self::large::LargeMail;
use self::shared_inbox::SharedInboxRoom;
pub use self::under_way::{MailUnderWay, UnderWay};
use crate::memory::MemoryPermit;

/// Mails that wait for the batcher at most; their octets are bounded by the memory budget.
const QUEUE: usize = 16_384;

/// A mail as a session received it.
#[derive(Debug)]
pub struct ReceivedMail {
    /// The client's address.
    pub peer: IpAddr,
    /// What it called itself; visible ASCII, bounded.
    pub hello: String,
    /// How it came.
    pub protocol: Protocol,
    /// Reverse-path, "" for the null one.
    pub sender: String,
    /// At least one, each once.
    pub recipients: Vec<RecipientAddress>,
    /// The data, unstuffed, lines ending in CRLF, without the terminator.
    pub data: Vec<u8>,
    /// Room in the memory budget, given back when the mail is done with.
    pub memory: MemoryPermit,
}

/// What the client is told of its mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Committed to disk for every recipient: 250.
    Stored,
    /// Postgres is away or busy: 451 4.3.0.
    TryAgain,
    /// A mailbox, address or tenant has no room for it: 452 4.2.2.
    Full,
    /// A recipient ceased since its RCPT: 451 4.2.1, so that a retry gives each its own reply.
    RecipientsChanged,
    /// Postgres refuses this mail for what is in it: 554 5.6.0.
    Refused,
}

/// A handle to the batcher. Cheap to clone; the batcher ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Delivery {
    waiting: mpsc::Sender<Waiting>,
    context: Arc<Context>,
}

struct Context {
    hostname: String,
    reserved: ReservedLocalParts,
    clock: Arc<dyn Clock>,
    shared_inboxes: SharedInboxRoom,
    large: LargeMail,
    under_way: UnderWay,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

impl Delivery {
    /// Starts the batcher of this process.
    pub fn start(
        config: &Config,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let rules = DeliveryLimits {
            free_class: config.retention.free_hours,
            inbox_bytes: i64::try_from(config.limits.inbox_bytes).unwrap_or(i64::MAX),
        };
        let under_way = UnderWay::default();
        let context = Context {
            under_way: under_way.clone(),
            hostname: config.smtp.hostname.clone(),
            reserved: ReservedLocalParts::new(&config.addresses.reserved),
            clock: Arc::clone(&clock),
            shared_inboxes: SharedInboxRoom::new(
                config.limits.inbox_bytes,
                config.retention.free_hours,
                store.clone(),
            ),
            large: LargeMail::new(store.clone(), Arc::clone(&clock), config.retention.free_hours),
        };
        let batcher = tokio::spawn(Batcher::new(store, bus, clock, rules, under_way).run(receiver));
        (Self { waiting: sender, context: Arc::new(context) }, batcher)
    }

    /// Tells the batcher of a transaction that a session has open, as long as the answer lives.
    pub fn mail_under_way(&self) -> MailUnderWay {
        self.context.under_way.begin()
    }

    /// Stores a mail for all of its recipients or for none, and returns when that is certain.
    pub async fn deliver(&self, mail: ReceivedMail) -> Verdict {
        let Context { hostname, reserved, clock, large, .. } = &*self.context;
        let memory = mail.memory;
        let recipients = mail.recipients.clone();
        let turn = large.turn(mail.data.len()).await;
        let parts = prepare::Parts {
            peer: mail.peer,
            hello: mail.hello,
            protocol: mail.protocol,
            sender: mail.sender,
            recipients: mail.recipients,
            data: mail.data,
        };
        let Some(mut prepared) = prepare::prepare(parts, hostname, reserved, clock.now()).await else {
            return Verdict::TryAgain;
        };
        if let Err(verdict) = self.check_shared_inboxes(&recipients, &prepared).await {
            return verdict;
        }
        let stored_ahead = match large.store_ahead(&mut prepared).await {
            Ok(stored_ahead) => stored_ahead,
            Err(verdict) => return verdict,
        };
        drop(turn);
        let (reply, verdict) = oneshot::channel();
        let verdict = match self.waiting.send(Waiting { mail: prepared, reply }).await {
            Ok(()) => verdict.await.unwrap_or(Verdict::TryAgain),
            Err(_) => Verdict::TryAgain,
        };
        if let (Some(stored_ahead), false) = (stored_ahead, verdict == Verdict::Stored) {
            large.discard(stored_ahead).await;
        }
        drop(memory);
        verdict
    }

    /// Whether the messages fit into the shared inboxes that they go to.
    async fn check_shared_inboxes(
        &self,
        recipients: &[RecipientAddress],
        mail: &NewMail,
    ) -> Result<(), Verdict> {
        let Context { shared_inboxes, clock, .. } = &*self.context;
        for (address, message) in recipients.iter().zip(&mail.recipients) {
            match shared_inboxes.fits(address.inbox_key(), message.size, clock.now()).await {
                Ok(true) => {}
                Ok(false) => return Err(Verdict::Full),
                Err(error) => {
                    tracing::warn!(%error, "the capacity of a shared inbox is not known");
                    return Err(Verdict::TryAgain);
                }
            }
        }
        Ok(())
    }
}
