//! The cores that a process may use.

use std::thread::available_parallelism;

/// Half of the cores, at least one: for work that leaves the rest of the processor to others, however much there is.
pub fn half() -> usize {
    half_of(available_parallelism().map_or(1, usize::from))
}

fn half_of(cores: usize) -> usize {
    (cores / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_the_other_half_where_there_is_one() {
        for (cores, expected) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
            assert_eq!(half_of(cores), expected, "of {cores}");
        }
    }
}
