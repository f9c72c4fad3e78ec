//! Keeps business time at Postgres' time, so that all processes agree on it.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tempmail_model::clock::SystemClock;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

/// Time between two measurements.
const PERIOD: Duration = Duration::from_secs(10);
/// The same while Postgres does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// A machine whose clock is off by more is not ready: its logs and timers mislead.
const TOLERATED: SignedDuration = SignedDuration::from_secs(5);
/// An answer that took longer tells the time too roughly.
const ROUND_TRIP_MAX: SignedDuration = SignedDuration::from_secs(1);

/// What it shows in `/readyz`.
const COMPONENT: &str = "clock";

/// Measures until `stop`.
pub async fn run(store: Store, clock: Arc<SystemClock>, readiness: Readiness, stop: CancellationToken) {
    loop {
        let pause = match measure(&store, &clock, &readiness).await {
            Ok(()) => PERIOD,
            Err(error) => {
                tracing::warn!(%error, "Postgres' time could not be read");
                RETRY
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Measures once and sets the clock.
pub async fn measure(store: &Store, clock: &SystemClock, readiness: &Readiness) -> Result<(), StoreError> {
    let measured = store.clock_offset(|| clock.local_now()).await;
    let unread = |_: &StoreError| readiness.set_not_ready(COMPONENT, "Postgres does not tell its time");
    let (offset, round_trip) = measured.inspect_err(unread)?;
    if round_trip > ROUND_TRIP_MAX {
        return Ok(());
    }
    clock.set_offset(offset);
    if offset.abs() > TOLERATED {
        let why = format!("this machine's clock differs from Postgres' by {} s", offset.abs().as_secs());
        readiness.set_not_ready(COMPONENT, why);
    } else {
        readiness.set_ready(COMPONENT);
    }
    Ok(())
}
