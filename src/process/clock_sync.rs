//! Keeps business time equal to Postgres' time, so that all processes agree on it.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tempmail_model::clock::SystemClock;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

/// Time between two measurements.
const PERIOD: Duration = Duration::from_secs(10);
/// Time between two measurements while Postgres does not answer, or not in time.
const RETRY: Duration = Duration::from_secs(1);
/// Largest tolerated offset. With a larger one the process is not ready, since its logs and timers
/// would be misleading.
const MAX_OFFSET: SignedDuration = SignedDuration::from_secs(5);
/// How long a measurement may take.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(5);
/// A measurement with a longer round trip is too inaccurate and is discarded.
const MAX_ROUND_TRIP: SignedDuration = SignedDuration::from_secs(1);

/// The component in `/readyz`.
const COMPONENT: &str = "clock";

/// Measures the offset once and sets the clock. Returns the time until the next measurement.
///
/// # Errors
/// Postgres does not answer.
pub(crate) async fn measure(
    store: &Store,
    clock: &SystemClock,
    readiness: &Readiness,
) -> Result<Duration, StoreError> {
    let measured = store.within(MEASURE_TIMEOUT).clock_offset(|| clock.local_now()).await;
    let failed = |_: &StoreError| readiness.set_not_ready(COMPONENT, "Postgres' time could not be read");
    let (offset, round_trip) = measured.inspect_err(failed)?;
    if round_trip > MAX_ROUND_TRIP {
        return Ok(RETRY);
    }
    clock.set_offset(offset);
    if offset.abs() > MAX_OFFSET {
        let why = format!("this machine's clock differs from Postgres' by {} s", offset.abs().as_secs());
        readiness.set_not_ready(COMPONENT, why);
    } else {
        readiness.set_ready(COMPONENT);
    }
    Ok(PERIOD)
}

/// Measures periodically until `stop` is cancelled.
pub(crate) async fn run(
    store: Store,
    clock: Arc<SystemClock>,
    readiness: Readiness,
    stop: CancellationToken,
) {
    loop {
        let pause = match measure(&store, &clock, &readiness).await {
            Ok(pause) => pause,
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
