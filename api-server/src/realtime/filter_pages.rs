//! How many rows a scan reads at a time where most of them may not match.

/// Rows of the first page: a client that is behind finds its mail among few.
const FIRST: i64 = 32;
/// Rows of a page at most.
const MOST: i64 = 512;

/// The sizes of the pages of one request: each has twice the rows of the one before.
#[derive(Debug)]
pub(crate) struct FilterPages {
    next: i64,
}

impl FilterPages {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Rows of the next page.
    pub(crate) fn next_size(&mut self) -> i64 {
        let size = self.next;
        self.next = (size * 2).min(MOST);
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_the_page_up_to_a_bound() {
        let mut pages = FilterPages::new();
        let sizes: Vec<_> = (0..7).map(|_| pages.next_size()).collect();
        assert_eq!(sizes, [32, 64, 128, 256, 512, 512, 512]);
    }
}
