//! Receivers that misbehave: each costs an attempt, and delays its own webhook only.

mod environment;
mod header_limits;
mod outcome;
mod privacy;
mod retry_after;

use tempmail_tests::receiver::Reaction;
use tempmail_tests::{App, Receiver};

/// How long tempmail waits for a receiver. A busy machine must be able to serve a few dozen receivers in that
/// time.
const TIMEOUT_SECONDS: u64 = 6;

/// A tempmail whose timeout (30 s) is not reached on a busy machine.
async fn app() -> App {
    App::builder().receivers().start().await
}

/// A tempmail with a short timeout.
async fn app_with_short_timeout() -> App {
    App::builder()
        .receivers()
        .config(|config| config.webhooks.timeout_seconds = TIMEOUT_SECONDS)
        .start()
        .await
}

/// A receiver that reacts in one way only.
async fn receiver_with(reaction: Reaction) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.react_with(reaction);
    receiver
}
