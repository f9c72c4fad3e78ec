//! The limit on open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of this process, which programs that are started later inherit, as far as it may; returns the limit
/// then.
///
/// # Panics
/// The system does not tell its limits.
pub fn raise_limit() -> usize {
    let limit = || getrlimit(Resource::RLIMIT_NOFILE).expect("the system tells its limits");
    let (_, most) = limit();
    // If it fails, the current limit applies.
    let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    usize::try_from(limit().0).unwrap_or(usize::MAX)
}
