//! Whether it is our own files that ran out.

use std::io;

/// `ENFILE` and `EMFILE` of Linux: the system's files, and those of the process.
const EXHAUSTED: [i32; 2] = [23, 24];

/// Whether an operation failed since there was no file left for it.
pub(super) fn are_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}
