//! Receivers that behave badly: each costs an attempt, and its own webhook alone.

mod outcome;
mod process;
mod retry_after;
mod said;

use tempmail_tests::receiver::Reaction;
use tempmail_tests::{App, Receiver};

/// A tempmail that waits for a receiver this many seconds.
const TIMEOUT_SECONDS: u64 = 2;

async fn impatient() -> App {
    App::builder()
        .receivers()
        .config(|config| config.webhooks.timeout_seconds = TIMEOUT_SECONDS)
        .start()
        .await
}

/// A receiver that reacts so, always.
async fn reacting(reaction: Reaction) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.react_with(reaction);
    receiver
}
