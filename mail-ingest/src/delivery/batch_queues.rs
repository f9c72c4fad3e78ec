//! The two queues of the batcher. Mails that take little time to insert are committed first, and bulky ones a few at
//! a time in between, so that the batch that others wait for stays short.

use tempmail_store::{NewMail, RawData};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::smtp::DeliveryOutcome;

/// Maximum mails of a batch.
pub(super) const BATCH_MAILS_MAX: usize = 256;
/// Maximum mails in a queue; their bytes are bounded by the memory budget.
const QUEUE_LENGTH: usize = 16_384;
/// Bytes of compressed data beyond which a mail is bulky.
const BULKY_BYTES: usize = 16 << 10;
/// Recipients beyond which a mail is bulky.
const BULKY_RECIPIENTS: usize = 10;

/// What completes a batch; its first mail may be larger.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchBounds {
    /// Compressed bytes.
    bytes: usize,
    recipients: usize,
}

impl BatchBounds {
    /// Of mails that are not bulky.
    pub(super) const SMALL: Self = Self { bytes: 4 << 20, recipients: 1_000 };
    /// Of bulky ones: some milliseconds of Postgres.
    pub(super) const BULKY: Self = Self { bytes: 512 << 10, recipients: 200 };
}

/// What came of a mail in a batch.
#[derive(Debug)]
pub(super) enum BatchOutcome {
    /// The outcome of its delivery.
    Final(DeliveryOutcome),
    /// It does not fit by the stored sums. It may fit by itself, after what expired was subtracted from those of these
    /// inboxes; that is not done here, since all other mail would wait for it.
    OverQuota(Box<NewMail>, Vec<Uuid>),
}

/// A mail whose session waits for the outcome.
#[derive(Debug)]
pub(super) struct QueuedMail {
    pub(super) mail: NewMail,
    /// Committed in a batch of its own, so that no other mail decides whether it fits.
    pub(super) is_alone: bool,
    pub(super) reply: oneshot::Sender<BatchOutcome>,
}

/// Puts mail into the queues. The batcher ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct BatchSender {
    small: mpsc::Sender<QueuedMail>,
    bulky: mpsc::Sender<QueuedMail>,
}

/// Mail for the batcher.
#[derive(Debug)]
pub(super) struct BatchQueues {
    small: mpsc::Receiver<QueuedMail>,
    bulky: mpsc::Receiver<QueuedMail>,
}

/// Both ends of empty queues.
pub(super) fn batch_queues() -> (BatchSender, BatchQueues) {
    let (small, small_receiver) = mpsc::channel(QUEUE_LENGTH);
    let (bulky, bulky_receiver) = mpsc::channel(QUEUE_LENGTH);
    (BatchSender { small, bulky }, BatchQueues { small: small_receiver, bulky: bulky_receiver })
}

impl BatchSender {
    /// Queues a mail; `false` if the batcher has ended.
    pub(super) async fn send(&self, mail: QueuedMail) -> bool {
        let queue = if is_bulky(&mail.mail) { &self.bulky } else { &self.small };
        queue.send(mail).await.is_ok()
    }
}

impl BatchQueues {
    /// Adds what is queued to `small` and `bulky`, and waits for mail unless there is some in `bulky` already.
    /// `false` once there is none and no more comes.
    pub(super) async fn receive(&mut self, small: &mut Vec<QueuedMail>, bulky: &mut Vec<QueuedMail>) -> bool {
        if bulky.is_empty() {
            // Where one queue has no senders, the other has none either.
            tokio::select! {
                biased;
                received = self.small.recv_many(small, BATCH_MAILS_MAX) => if received == 0 {
                    self.bulky.recv_many(bulky, BATCH_MAILS_MAX).await;
                },
                received = self.bulky.recv_many(bulky, BATCH_MAILS_MAX) => if received == 0 {
                    self.small.recv_many(small, BATCH_MAILS_MAX).await;
                },
            }
        }
        take_queued(&mut self.small, small);
        take_queued(&mut self.bulky, bulky);
        !(small.is_empty() && bulky.is_empty())
    }

    /// Removes what is queued.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = QueuedMail> {
        std::iter::from_fn(move || self.small.try_recv().or_else(|_| self.bulky.try_recv()).ok())
    }
}

/// Removes the first mails, up to the bounds of a batch; at least one.
pub(super) fn take_batch(queued: &mut Vec<QueuedMail>, bounds: BatchBounds) -> Vec<QueuedMail> {
    let (mut bytes, mut recipients) = (0, 0);
    let is_alone = queued.first().is_some_and(|first| first.is_alone);
    let count = queued
        .iter()
        .take_while(|next| {
            let fits = bytes < bounds.bytes && recipients < bounds.recipients;
            let fits = fits && (recipients == 0 || !(is_alone || next.is_alone));
            bytes += inline_bytes(&next.mail);
            recipients += next.mail.recipients.len();
            fits
        })
        .count();
    queued.drain(..count).collect()
}

/// Adds the mails that are queued, without waiting.
fn take_queued(queue: &mut mpsc::Receiver<QueuedMail>, mails: &mut Vec<QueuedMail>) {
    while mails.len() < BATCH_MAILS_MAX
        && let Ok(mail) = queue.try_recv()
    {
        mails.push(mail);
    }
}

fn is_bulky(mail: &NewMail) -> bool {
    inline_bytes(mail) > BULKY_BYTES || mail.recipients.len() > BULKY_RECIPIENTS
}

/// Compressed bytes that the batch inserts.
fn inline_bytes(mail: &NewMail) -> usize {
    match &mail.raw {
        RawData::Inline(data) => data.len(),
        RawData::StoredSeparately { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use tempmail_model::address::{RecipientAddress, Reservation};
    use tempmail_store::{MailSummary, NewMessage};
    use uuid::Uuid;

    use super::*;

    fn mail(bytes: usize, recipients: usize) -> QueuedMail {
        let to = NewMessage {
            id: Uuid::nil(),
            address: RecipientAddress::parse("a@b.example").unwrap(),
            reserved: Reservation::None,
            size: 0,
        };
        let mail = NewMail {
            id: Uuid::nil(),
            raw: RawData::Inline(vec![0; bytes]),
            for_clause_offset: 0,
            sender: String::new(),
            summary: MailSummary::default(),
            recipients: vec![to; recipients],
        };
        QueuedMail { mail, is_alone: false, reply: oneshot::channel().0 }
    }

    #[tokio::test]
    async fn bulky_mail_waits_in_a_queue_of_its_own() {
        let (sender, mut queues) = batch_queues();
        let (mut small, mut bulky) = (Vec::new(), Vec::new());
        for (bytes, recipients) in [(200 << 10, 1), (1_000, 1), (1_000, 100), (16 << 10, 10)] {
            assert!(sender.send(mail(bytes, recipients)).await);
        }
        assert!(queues.receive(&mut small, &mut bulky).await);
        assert_eq!((small.len(), bulky.len()), (2, 2));
        assert!(sender.send(mail(1, 1)).await);
        drop(sender);
        small.clear();
        assert!(queues.receive(&mut small, &mut bulky).await, "does not wait while bulky mail is left");
        assert_eq!((small.len(), bulky.len()), (1, 2));
        (small, bulky) = (Vec::new(), Vec::new());
        assert!(!queues.receive(&mut small, &mut bulky).await);
    }

    #[test]
    fn a_batch_of_bulky_mail_is_bounded() {
        let mut queued: Vec<_> = (0..10).map(|_| mail(200 << 10, 1)).collect();
        assert_eq!(take_batch(&mut queued, BatchBounds::BULKY).len(), 3);
        assert_eq!(take_batch(&mut queued, BatchBounds::SMALL).len(), 7);
        let mut queued: Vec<_> = (0..10).map(|_| mail(1, 100)).collect();
        assert_eq!(take_batch(&mut queued, BatchBounds::BULKY).len(), 2);
    }

    #[test]
    fn a_mail_that_is_alone_shares_no_batch() {
        let alone = || QueuedMail { is_alone: true, ..mail(1, 1) };
        let mut queued = vec![mail(1, 1), mail(1, 1), alone(), alone(), mail(1, 1)];
        let batches = std::iter::from_fn(|| {
            let batch = take_batch(&mut queued, BatchBounds::SMALL);
            (!batch.is_empty()).then_some(batch.len())
        });
        assert_eq!(batches.collect::<Vec<_>>(), [2, 1, 1, 1]);
    }
}
