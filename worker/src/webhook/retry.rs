//! When a webhook is retried after a failure.

use jiff::SignedDuration;
use rand::RngExt as _;

/// Delays after the first, second, … failure in a row. The failure after the last delay disables the webhook.
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
    let mut random = rand::rng();
    DELAYS.map(|delay| delay.mul_f64(random.random_range(1.0 - JITTER..=1.0 + JITTER)))
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
