//! When a webhook, or an event, is retried after a failure.

use jiff::SignedDuration;
use tempmail_model::chance;
use tempmail_store::DeliveryAttempt;

/// Delays after the first, second, … failure: of a webhook those in a row, of an event its own. The failure after the last
/// delay disables the webhook, or the event is given up.
const DELAYS: [SignedDuration; 9] = [
    SignedDuration::from_secs(5),
    SignedDuration::from_secs(30),
    SignedDuration::from_mins(2),
    SignedDuration::from_mins(10),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(3),
    SignedDuration::from_hours(3),
];

/// Each delay is shorter or longer by up to this share, so that webhooks that failed together are not retried
/// together.
const JITTER: f64 = 0.2;

/// The delays, each with a jitter of its own.
pub(super) fn delays() -> [SignedDuration; DELAYS.len()] {
    DELAYS.map(|delay| delay.mul_f64(chance::factor(1.0 - JITTER..=1.0 + JITTER)))
}

/// Whether an attempt was the last one of its event, which was not delivered.
pub(super) fn is_given_up(attempt: &DeliveryAttempt) -> bool {
    attempt.error.is_some() && usize::try_from(attempt.number).is_ok_and(|number| number > DELAYS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stay_within_their_jitter() {
        for _ in 0..1_000 {
            for (delay, base) in delays().iter().zip(DELAYS) {
                assert!((base.mul_f64(0.8)..=base.mul_f64(1.2)).contains(delay), "{delay} for {base}");
            }
        }
    }
}
