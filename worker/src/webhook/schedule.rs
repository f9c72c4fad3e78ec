//! When a webhook that failed is tried again.

use jiff::SignedDuration;
use rand::RngExt as _;

/// Gaps after the first, second, … failed attempt in a row. The failure after the last gap disables
/// the webhook.
const GAPS: [SignedDuration; 9] = [
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

/// Each gap is shorter or longer by up to this share, so that those that failed together do not
/// come back together.
const JITTER: f64 = 0.2;

/// The gaps of one recording.
pub(super) fn gaps() -> [SignedDuration; GAPS.len()] {
    let mut random = rand::rng();
    GAPS.map(|gap| gap.mul_f64(random.random_range(1.0 - JITTER..=1.0 + JITTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stay_within_their_jitter() {
        for _ in 0..1_000 {
            for (gap, of) in gaps().iter().zip(GAPS) {
                assert!((of.mul_f64(0.8)..=of.mul_f64(1.2)).contains(gap), "{gap} of {of}");
            }
        }
    }
}
