//! The 25 s hold of `/v1/inbox`, `/v1/domain` and `/v1/me`: reads what there is, waits for more,
//! takes what came.
//!
//! The order is fixed, so that no mail is missed: the caller takes the slots, the wait listens,
//! the store is read from the cursor, and only then it waits.

mod collected;
mod filter;
mod query;
mod reader;

use std::time::Duration;

use tempmail_model::limits::LONG_POLL_SECONDS;
use tempmail_store::MessageRow;
use tokio::time::Instant;

pub(crate) use query::LongPollQuery;

use crate::error::{V1Error, code};
use crate::listener::Listener;
use crate::openapi::Operation;
use crate::state::AppState;
use reader::{Progress, Reader};

/// How a long-poll ends that does not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is mail.
    Mail {
        /// Newest first; at least one.
        messages: Vec<MessageRow>,
        /// Where to go on.
        position: i64,
    },
    /// Time is up, the server drains, or the scan reached its bound.
    Nothing {
        /// Where to go on.
        position: i64,
    },
}

/// Describes a long-poll: its parameters and its answers but the mail.
pub(crate) fn described(operation: Operation) -> Operation {
    query::described(operation)
        .empty(204, "Nothing within 25 s: ask again.")
        .header("X-Next-Since", "The position reached, to go on from.")
        .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY])
}

/// Waits for mail as the interface says; at most 25 s. `since` is the position of the cursor.
///
/// # Errors
/// The caller may not read the scope (any more), its token has ended, or Postgres is away.
pub(crate) async fn wait(
    state: &AppState,
    listener: Listener,
    query: LongPollQuery,
    since: Option<i64>,
) -> Result<Outcome, V1Error> {
    let mut reader = Reader::new(listener, query, since);
    reader.listener().wake_at(Instant::now() + Duration::from_secs(LONG_POLL_SECONDS));
    // Boxed: while it waits, a long-poll does not keep the room that reading takes.
    let mut progress = Box::pin(reader.read(state)).await?;
    while progress == Progress::Waiting {
        let woken = reader.listener().woken().await;
        if woken.recheck {
            Box::pin(reader.listener().recheck(state)).await?;
        }
        let recent =
            if woken.recheck { None } else { Box::pin(reader.take_recent(state, woken.arrived)).await? };
        progress = match recent {
            Some(progress) => progress,
            None => Box::pin(reader.read(state)).await?,
        };
        if woken.due || woken.drain {
            Box::pin(reader.forget_gone(state)).await?;
            break;
        }
    }
    Ok(reader.outcome())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: fn(&'static AppState, Listener, LongPollQuery, Option<i64>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_wait_is_small() {
        let size = size_of_future(wait);
        assert!(size <= 1536, "{size}");
    }
}
