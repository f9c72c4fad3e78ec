//! Pages of lists.

/// How many rows come before a page of `size` rows; pages count from 1. `tempmail token` reads all of them, so where lists
/// of the HTTP interface end is not decided here.
pub(crate) fn rows_before(page: i64, size: i64) -> i64 {
    // No list has this many pages.
    page.clamp(1, 1 << 32).saturating_sub(1).saturating_mul(size)
}
