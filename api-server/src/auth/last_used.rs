//! Records when mailboxes and tokens were last used, in the background. Records are dropped while many
//! are queued: only the removal of unused mailboxes and the lists of tokens depend on them.

use jiff::{SignedDuration, Timestamp};
use tempmail_store::{ApiToken, Mailbox, Store};
use tokio::sync::mpsc;
use uuid::Uuid;

/// A mailbox is recorded at most once in this time.
const MAILBOX_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
/// A token is recorded at most once in this time.
const TOKEN_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// Records that may be queued.
const QUEUE_MAX: usize = 1024;

enum LastUse {
    Mailbox(Uuid, Timestamp),
    Token(Uuid, Timestamp),
}

/// Queues records of last use.
pub(crate) struct LastUsedRecorder(mpsc::Sender<LastUse>);

impl LastUsedRecorder {
    /// Starts the task that writes the records; it ends when the recorder is dropped.
    pub(super) fn start(store: Store) -> Self {
        let (sender, mut queued) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(async move {
            while let Some(last_use) = queued.recv().await {
                let written = match last_use {
                    LastUse::Mailbox(id, at) => store.touch_mailbox(id, at, MAILBOX_INTERVAL).await,
                    LastUse::Token(id, at) => store.touch_token(id, at, TOKEN_INTERVAL).await,
                };
                if written.is_err() {
                    tracing::debug!("a last use was not recorded");
                }
            }
        });
        Self(sender)
    }

    /// Records that a mailbox was signed in to or read.
    pub(crate) fn record_mailbox(&self, mailbox: &Mailbox, now: Timestamp) {
        if now.duration_since(mailbox.seen_at) >= MAILBOX_INTERVAL {
            self.enqueue(LastUse::Mailbox(mailbox.id, now));
        }
    }

    /// Records that a token was used.
    pub(super) fn record_token(&self, token: &ApiToken, now: Timestamp) {
        if token.last_used_at.is_none_or(|last| now.duration_since(last) >= TOKEN_INTERVAL) {
            self.enqueue(LastUse::Token(token.id, now));
        }
    }

    fn enqueue(&self, last_use: LastUse) {
        // The queue is full: the next use is recorded instead.
        let _ = self.0.try_send(last_use);
    }
}
