//! The decision at RCPT. Plain shared inboxes are told from a view in memory. For all others
//! the sessions of the pod ask one task, which looks up together what waits, so that Postgres
//! answers one question a round trip and not one a recipient. A yes holds for five seconds and
//! an exact address; a no is never kept. Neither decides who gets the mail: that is done by the
//! statement that stores it.

mod cache;
mod judge;
mod lookup;
mod shared_view;

use std::sync::Arc;

use tempmail_model::address::{RecipientAddress, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::cache::YesCache;
pub use self::judge::Accepting;
use self::lookup::{Lookup, Question};
pub use self::shared_view::SharedView;
use crate::room::StorageRoom;
use crate::smtp::{RecipientRefusal, RecipientToCheck};

/// Questions that wait at most; a session asks about its recipients at once.
const QUEUE: usize = 4_096;

/// A recipient's answer, as [`Session`](crate::smtp::Session) takes it.
pub type Answer = Result<RecipientAddress, RecipientRefusal>;

/// Decides recipients. Cheap to clone; its task ends with the last clone.
#[derive(Debug, Clone)]
pub struct Recipients {
    questions: mpsc::Sender<Question>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cache: YesCache,
    view: SharedView,
    reserved: ReservedLocalParts,
    room: StorageRoom,
}

impl Recipients {
    /// Starts the task that asks Postgres.
    pub fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        reserved: ReservedLocalParts,
        view: SharedView,
        room: StorageRoom,
    ) -> (Self, JoinHandle<()>) {
        let (questions, receiver) = mpsc::channel(QUEUE);
        let task = tokio::spawn(Lookup::new(store, clock, reserved.clone()).run(receiver));
        let shared = Shared { cache: YesCache::default(), view, reserved, room };
        (Self { questions, shared: Arc::new(shared) }, task)
    }

    /// Decides the recipients of one flight, in their order. `size` is what MAIL declared; 0 if
    /// nothing.
    pub async fn check(&self, recipients: Vec<RecipientToCheck>, size: u64) -> Vec<Answer> {
        let mut asked = Vec::new();
        let known: Vec<Option<Answer>> = recipients
            .into_iter()
            .map(|recipient| {
                let address = match recipient {
                    RecipientToCheck::Address(address) => address,
                    RecipientToCheck::Postmaster => match self.shared.room.postmaster() {
                        Some(address) => address,
                        None => return Some(Err(RecipientRefusal::Unavailable)),
                    },
                };
                // Only a yes may come from the view.
                if self.shared.room.has_shared_room()
                    && self.shared.view.is_shared(&address, &self.shared.reserved)
                {
                    return Some(Ok(address));
                }
                match self.shared.cache.get(&address, size) {
                    Some(accepting) => Some(self.admit(address, accepting)),
                    None => {
                        asked.push(address);
                        None
                    }
                }
            })
            .collect();
        let mut found = if asked.is_empty() { Vec::new() } else { self.ask(asked, size).await }.into_iter();
        known
            .into_iter()
            .map(|answer| answer.or_else(|| found.next()).unwrap_or(Err(RecipientRefusal::Unavailable)))
            .collect()
    }

    async fn ask(&self, addresses: Vec<RecipientAddress>, size: u64) -> Vec<Answer> {
        let (reply, answer) = oneshot::channel();
        if self.questions.send(Question { addresses, size, reply }).await.is_err() {
            return Vec::new();
        }
        let Ok(judged) = answer.await else {
            return Vec::new();
        };
        judged
            .into_iter()
            .map(|(address, verdict)| {
                let accepting = verdict?;
                self.shared.cache.insert(address.clone(), accepting);
                self.admit(address, accepting)
            })
            .collect()
    }

    /// The bounds of the installation: shared inboxes stop first.
    fn admit(&self, address: RecipientAddress, accepting: Accepting) -> Answer {
        let room = &self.shared.room;
        let has_room = if accepting.shared { room.has_shared_room() } else { room.has_room() };
        if has_room { Ok(address) } else { Err(RecipientRefusal::StoreFull) }
    }
}
