//! Chance for ids and jitter: one source, which a test can seed so that a failure repeats. What must not be guessed
//! (secrets, tokens, passwords) comes from the operating system instead.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use uuid::{Builder, Uuid};

thread_local! {
    /// The source of a thread: as it was seeded, else by the operating system.
    static SOURCE: RefCell<StdRng> = RefCell::new(rand::make_rng());
}

/// Makes what this thread draws from now on the sequence of `seed`. For tests.
pub fn seed(seed: u64) {
    SOURCE.set(StdRng::seed_from_u64(seed));
}

/// Fills `bytes`.
pub fn fill(bytes: &mut [u8]) {
    SOURCE.with_borrow_mut(|source| source.fill_bytes(bytes));
}

/// A number of the range, to lengthen or shorten a time by.
pub fn factor(range: RangeInclusive<f64>) -> f64 {
    SOURCE.with_borrow_mut(|source| source.random_range(range))
}

/// A UUIDv4.
pub fn uuid() -> Uuid {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    Builder::from_random_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::id::new_id;

    #[test]
    fn a_seed_repeats_what_was_drawn() {
        let drawn = || {
            seed(7);
            (new_id(Timestamp::UNIX_EPOCH), uuid(), factor(0.5..=1.0))
        };
        let first = drawn();
        assert_eq!(drawn(), first);
        assert_eq!(first.1.get_version_num(), 4);
        assert!((0.5..=1.0).contains(&first.2));
        assert_ne!(uuid(), uuid());
    }
}
