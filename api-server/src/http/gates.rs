//! What this process does a few of at once. Who waits takes turns by tenant, and within a tenant by client; without a
//! tenant by network.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use tempmail_admission::{Turn, TurnBounds, TurnKey, Turns};
use tempmail_runtime::cores;
use tokio::time::Instant;
use uuid::Uuid;

use super::client::Party;
use super::error::ApiError;

/// How long a request waits for what takes much time itself.
const PATIENT: Duration = Duration::from_secs(30);
/// How long it waits for what the store does one at a time.
const IN_STORE: Duration = Duration::from_secs(8);
/// How long it waits for a document.
const DOCUMENT: Duration = Duration::from_secs(5);
/// Statements at once of each kind that occupies a connection of the store for long: it has 10, unless it is configured.
const STATEMENTS: usize = 4;

/// The gates of one process. Clones share them.
#[derive(Clone)]
pub(crate) struct Gates {
    /// Passwords that are hashed: on half of the cores.
    pub(crate) passwords: Gate,
    /// Messages that are read for waits and searches. Each is in memory meanwhile.
    pub(crate) mail_reads: Gate,
    /// Whatever parses mail, or compares much of it. No tenant or network has more than half of the cores.
    pub(crate) parsing: Gate,
    /// HTML documents that are made.
    pub(crate) documents: Gate,
    /// Later pages of messages, counts, searches and lists of mailboxes. What a tenant, or a mailbox of none, asks for at
    /// once keeps one core of Postgres busy, and leaves the others to other requests.
    pub(crate) long_reads: Gate,
    /// Scans of waits and long-polls for mail that is far between.
    pub(crate) scans: Gate,
    /// Deletions. Those in one inbox wait for each other in Postgres, with a connection each.
    pub(crate) deletions: Gate,
}

/// Turns at one thing. Clones share them.
#[derive(Clone)]
pub(crate) struct Gate {
    /// As metrics have it.
    name: &'static str,
    turns: Turns<Party>,
    within: Duration,
}

impl Gates {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get).max(2);
        let gate = |name, at_once, at_once_of_party, (waiting, waiting_of_member), within| Gate {
            name,
            turns: Turns::new(TurnBounds { at_once, at_once_of_party, waiting, waiting_of_member }),
            within,
        };
        // The waits of one client, such as a run of tests, may all be met by mail at once.
        let waits = (8_192, 2_048);
        Self {
            passwords: gate("passwords", cores::half(), cores::half(), (64, 16), PATIENT),
            mail_reads: gate("mail_reads", 64, 2, waits, PATIENT),
            parsing: gate("parsing", cores, cores / 2, waits, PATIENT),
            documents: gate("documents", 2, 1, (256, 16), DOCUMENT),
            long_reads: gate("long_reads", STATEMENTS, 1, (1_024, 256), IN_STORE),
            scans: gate("scans", STATEMENTS, 1, waits, IN_STORE),
            deletions: gate("deletion", 2 * STATEMENTS, 2, (1_024, 256), IN_STORE),
        }
    }
}

impl Gate {
    /// Waits for a turn.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where too many wait, or none has come in time.
    pub(crate) async fn turn(&self, key: impl Into<TurnKey<Party>>) -> Result<Turn<Party>, ApiError> {
        self.turn_until(key, self.deadline()).await
    }

    /// Waits for a turn until `deadline`.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) async fn turn_until(
        &self,
        key: impl Into<TurnKey<Party>>,
        deadline: Instant,
    ) -> Result<Turn<Party>, ApiError> {
        self.turns.acquire_until(key, deadline).await.map_err(|_no_turn| ApiError::Busy(self.name))
    }

    /// A turn of a tenant, or of a mailbox of none, for a page of a list; the first page needs none.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) async fn turn_for_page(
        &self,
        owner: Uuid,
        page: i64,
    ) -> Result<Option<Turn<Party>>, ApiError> {
        if page <= 1 {
            return Ok(None);
        }
        self.turn(Party::Id(owner)).await.map(Some)
    }

    /// Until when one who comes now waits.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.within
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Poll;

    use futures_util::poll;

    use super::*;

    type Waiting<'g> = Pin<Box<dyn Future<Output = Result<Turn<Party>, ApiError>> + 'g>>;

    fn tenant(n: u128) -> Party {
        Party::Id(Uuid::from_u128(n))
    }

    /// The turns that a key gets at once of `wanted`, and those that wait.
    async fn ask(gate: &Gate, key: TurnKey<Party>, wanted: usize) -> (Vec<Turn<Party>>, Vec<Waiting<'_>>) {
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..wanted {
            let mut one: Waiting<'_> = Box::pin(gate.turn(key));
            match poll!(one.as_mut()) {
                Poll::Ready(turn) => held.push(turn.expect("the queue has room")),
                Poll::Pending => waiting.push(one),
            }
        }
        (held, waiting)
    }

    #[tokio::test]
    async fn one_tenant_leaves_cores_and_statements_to_others() {
        let gates = Gates::new();
        for gate in [&gates.mail_reads, &gates.parsing, &gates.long_reads, &gates.scans, &gates.deletions] {
            let (held, waiting) = ask(gate, tenant(1).into(), 100).await;
            assert!(!held.is_empty() && !waiting.is_empty());
            let (of_other, _) = ask(gate, tenant(2).into(), 1).await;
            assert_eq!(of_other.len(), 1, "{}", gate.name);
        }
    }

    #[tokio::test]
    async fn scans_and_long_reads_of_all_tokens_of_a_tenant_are_one_at_a_time() {
        let gates = Gates::new();
        for gate in [&gates.scans, &gates.long_reads] {
            let (held, mut waiting) = ask(gate, tenant(1).into(), 19).await;
            assert_eq!((held.len(), waiting.len()), (1, 18));
            drop(held);
            let next = waiting.remove(0).await.expect("the turn of the next one");
            assert!(poll!(waiting[0].as_mut()).is_pending());
            drop(next);
        }
    }

    #[tokio::test]
    async fn documents_of_many_mailboxes_are_one_turn_of_their_client() {
        let gates = Gates::new();
        let key = |client, mailbox| TurnKey { party: tenant(client), member: tenant(mailbox) };
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for client in 1..=3 {
            for mailbox in 1..=5 {
                let (begun, queued) = ask(&gates.documents, key(client, 10 * client + mailbox), 1).await;
                held.extend(begun);
                waiting.extend(queued);
            }
        }
        assert_eq!(held.len(), 2);
        let mut other: Waiting<'_> = Box::pin(gates.documents.turn(tenant(4)));
        let mut ended = 0;
        while poll!(other.as_mut()).is_pending() {
            held.remove(0);
            ended += 1;
            for at in (0..waiting.len()).rev() {
                if let Poll::Ready(turn) = poll!(waiting[at].as_mut()) {
                    held.push(turn.expect("a turn"));
                    drop(waiting.remove(at));
                }
            }
        }
        assert!(ended <= 4, "it came after {ended} documents");
    }

    #[tokio::test(start_paused = true)]
    async fn refuses_who_waits_too_long_and_nobody_else() {
        let gates = Gates::new();
        let held = gates.long_reads.turn(tenant(1)).await.expect("a free turn");
        let began = Instant::now();
        assert_eq!(gates.long_reads.turn(tenant(1)).await.err(), Some(ApiError::Busy("long_reads")));
        assert_eq!(began.elapsed(), IN_STORE);
        assert!(gates.long_reads.turn(tenant(2)).await.is_ok());
        drop(held);
        assert!(gates.long_reads.turn(tenant(1)).await.is_ok());
    }

    #[tokio::test]
    async fn bounds_the_passwords_that_wait() {
        let gates = Gates::new();
        let (_held, mut waiting) = ask(&gates.passwords, tenant(1).into(), cores::half() + 16).await;
        assert_eq!(waiting.len(), 16);
        assert_eq!(gates.passwords.turn(tenant(1)).await.err(), Some(ApiError::Busy("passwords")));
        for other in 2..=3 {
            waiting.extend(ask(&gates.passwords, tenant(other).into(), 15).await.1);
        }
        let last: Waiting<'_> = Box::pin(gates.passwords.turn(tenant(4)));
        waiting.push(last);
        assert!(poll!(waiting[46].as_mut()).is_pending(), "one more finds room");
    }
}
