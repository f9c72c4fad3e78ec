//! Final delivery: every session hands its mail to the one batcher of the process, which
//! commits what is waiting in one statement. The next batch is what came while the last one
//! committed, and, for at most a millisecond, what is just coming in. A session hears its
//! verdict after the commit.

mod batcher;
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
use tempmail_store::{DeliveryRules, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::batcher::{Batcher, Waiting};
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

#[derive(Debug)]
struct Context {
    hostname: String,
    reserved: ReservedLocalParts,
    clock: ClockHandle,
    shared_inboxes: SharedInboxRoom,
    under_way: UnderWay,
}

/// A clock that `Debug` can pass over.
#[derive(Clone)]
struct ClockHandle(Arc<dyn Clock>);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
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
        let rules = DeliveryRules {
            free_class: config.retention.free_hours,
            inbox_bytes: i64::try_from(config.limits.inbox_bytes).unwrap_or(i64::MAX),
        };
        let under_way = UnderWay::default();
        let context = Context {
            under_way: under_way.clone(),
            hostname: config.smtp.hostname.clone(),
            reserved: ReservedLocalParts::new(&config.addresses.reserved),
            clock: ClockHandle(Arc::clone(&clock)),
            shared_inboxes: SharedInboxRoom::new(
                config.limits.inbox_bytes,
                config.retention.free_hours,
                store.clone(),
            ),
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
        let memory = mail.memory;
        let recipients = mail.recipients.clone();
        let prepared = prepare::prepare(
            prepare::Parts {
                peer: mail.peer,
                hello: mail.hello,
                protocol: mail.protocol,
                sender: mail.sender,
                recipients: mail.recipients,
                data: mail.data,
            },
            &self.context.hostname,
            &self.context.reserved,
            self.context.clock.0.now(),
        )
        .await;
        let Some(prepared) = prepared else {
            return Verdict::TryAgain;
        };
        let room = &self.context.shared_inboxes;
        let now = self.context.clock.0.now();
        for (address, message) in recipients.iter().zip(&prepared.recipients) {
            match room.fits(address.inbox_key(), message.size, now).await {
                Ok(true) => {}
                Ok(false) => return Verdict::Full,
                Err(error) => {
                    tracing::warn!(%error, "the room of a shared inbox is not known");
                    return Verdict::TryAgain;
                }
            }
        }
        let (reply, verdict) = oneshot::channel();
        let verdict = match self.waiting.send(Waiting { mail: prepared, reply }).await {
            Ok(()) => verdict.await.unwrap_or(Verdict::TryAgain),
            Err(_) => Verdict::TryAgain,
        };
        drop(memory);
        verdict
    }
}
