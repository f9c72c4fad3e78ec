//! When a mailbox was last seen and a token last used: written off the request's path, and
//! left out where much of it is waiting, since nothing but tidiness depends on it.

use jiff::{SignedDuration, Timestamp};
use tempmail_store::{ApiToken, Mailbox, Store};
use tokio::sync::mpsc;
use uuid::Uuid;

/// A mailbox is written to once in this time.
const MAILBOX_STEP: SignedDuration = SignedDuration::from_hours(1);
/// A token is written to once in this time.
const TOKEN_STEP: SignedDuration = SignedDuration::from_mins(1);
/// Touches that may be waiting.
const WAITING: usize = 1024;

enum Touch {
    Mailbox(Uuid, Timestamp),
    Token(Uuid, Timestamp),
}

/// Where touches are left.
pub(crate) struct Touches(mpsc::Sender<Touch>);

impl Touches {
    /// Starts the task that writes them; it ends when this is dropped.
    pub(crate) fn start(store: Store) -> Self {
        let (sender, mut waiting) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            while let Some(touch) = waiting.recv().await {
                let written = match touch {
                    Touch::Mailbox(id, at) => store.touch_mailbox(id, at, MAILBOX_STEP).await,
                    Touch::Token(id, at) => store.touch_token(id, at, TOKEN_STEP).await,
                };
                if written.is_err() {
                    tracing::debug!("a last use was not written");
                }
            }
        });
        Self(sender)
    }

    /// The mailbox was signed in to or read.
    pub(crate) fn mailbox(&self, mailbox: &Mailbox, now: Timestamp) {
        if now.duration_since(mailbox.seen_at) >= MAILBOX_STEP {
            self.leave(Touch::Mailbox(mailbox.id, now));
        }
    }

    /// The token was used.
    pub(crate) fn token(&self, token: &ApiToken, now: Timestamp) {
        if token.last_used_at.is_none_or(|last| now.duration_since(last) >= TOKEN_STEP) {
            self.leave(Touch::Token(token.id, now));
        }
    }

    fn leave(&self, touch: Touch) {
        // Full: the next use tries again.
        let _ = self.0.try_send(touch);
    }
}
