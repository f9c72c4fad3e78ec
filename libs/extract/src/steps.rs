//! Work, as tests count it: the octets of texts and the words that are looked at, and the open elements of HTML.
//!
//! What is looked at is counted where it is handed out (`text::Text`, `part::Part::hits_in`), so code that looks back or
//! forward too far can't leave it out.

/// Counts work; only tests do.
#[inline]
pub(crate) fn count(steps: usize) {
    #[cfg(test)]
    tests::STEPS.with(|all| all.set(all.get() + steps));
    #[cfg(not(test))]
    let _ = steps;
}

#[cfg(test)]
mod tests;
